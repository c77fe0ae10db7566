#!/usr/bin/env python3
"""Serves the page's files with made-up states, for developing and testing it without a job.

usage: tests/end_to_end/page_server.py [hundred_members|standstill|fresh|async_job] [--port=8200]
"""
import http.server
import json
import pathlib
import sys
import threading
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "scheduler" / "page"), str(ROOT / "tests" / "end_to_end")]
import assets  # noqa: E402
import page_states  # noqa: E402

DYGRAPHS = pathlib.Path("/usr/share/javascript/dygraphs")
POLICY = "default-src 'self'"
FILES = {"/": ("kPageHtml", "text/html; charset=utf-8"), "/page.css": ("kPageCss", "text/css"),
         "/dygraphs.js": ("kDygraphs", "text/javascript"), "/page.js": ("kPageScript", "text/javascript"),
         "/icon.svg": ("kPageIcon", "image/svg+xml")}


class PageServer(http.server.ThreadingHTTPServer):
    """Keeps the path and size of each answer. Shows `state`; answers no question while `failing`."""
    daemon_threads = True

    def __init__(self, state, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.state, self.texts, self.answers = state, assets.texts(DYGRAPHS), []
        self.began, self.failing = time.monotonic(), False
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def address(self):
        return f"http://127.0.0.1:{self.server_address[1]}/"

    def document(self, since):
        return page_states.STATES[self.state](int(time.monotonic() - self.began), since)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        address = urllib.parse.urlsplit(self.path)
        status = 200
        if self.server.failing:
            self.close_connection = True
            return
        if address.path in FILES:
            name, kind = FILES[address.path]
            body = self.server.texts[name].encode()
        elif address.path == "/api/v1/page":
            since = int(urllib.parse.parse_qs(address.query).get("since", ["0"])[0])
            kind, body = "application/json", json.dumps(self.server.document(since), separators=(",", ":")).encode()
        else:
            status, kind, body = 404, "text/plain", b"no such path\n"
        self.server.answers.append((time.monotonic(), self.path, len(body)))
        self.send_response(status)
        for header in (("Content-Type", kind), ("Content-Length", str(len(body))), ("Content-Security-Policy", POLICY),
                       ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer")):
            self.send_header(*header)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    named = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    port = next((int(a.partition("=")[2]) for a in sys.argv[1:] if a.startswith("--port=")), 8200)
    server = PageServer(named[0] if named else "hundred_members", port)
    print(server.address(), flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
