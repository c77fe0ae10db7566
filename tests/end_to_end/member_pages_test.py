#!/usr/bin/env python3
"""A server and a worker that answer HTTP about themselves while they train."""
import json
import re
import urllib.error
import urllib.request

from harness import DaemonsCase, generate, main, reference_job, wait_until, write_job

WATCH_LINE = re.compile(r"watch at (\S+)")


class MemberPages(DaemonsCase):
    def setUp(self):
        super().setUp()
        self.token = self.folder / "token"
        self.token.touch(mode=0o600)
        self.token.write_text("0123456789abcdef0123456789abcdef\n")
        data = generate(self.folder / "data", rows=20000, eval_rows=64)
        self.job = write_job(self.folder / "job.json", reference_job(data, batch_size=256, epochs=1000))
        self.addresses = {}

    def serve(self, name, *flags):
        """Starts a daemon that answers HTTP, and waits for its address."""
        said = self.folder / f"{name}.stderr"
        with said.open("w") as stderr:
            self.start(name, f"--job={self.job}", "--http=127.0.0.1:0", f"--http_token_file={self.token}", *flags,
                       stderr=stderr)

        def told():
            found = WATCH_LINE.search(said.read_text())
            if found:
                self.addresses[name] = found[1].rstrip("/")
            return found
        wait_until(told, 30, f"the address of {name}")

    def ask(self, name, path, token=True):
        """The status and the text of an answer."""
        request = urllib.request.Request(self.addresses[name] + path)
        if token:
            request.add_header("Authorization", "Bearer " + self.token.read_text().strip())
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()

    def value(self, name, figure):
        """The sum of a figure's samples."""
        status, text = self.ask(name, "/metrics")
        self.assertEqual(status, 200)
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
                   if line.split("{")[0].split(" ")[0] == figure)

    def test_members_tell_what_they_do(self):
        address = self.folder / "address"
        scheduler = self.start("hdps-scheduler", f"--job={self.job}", f"--out={self.out('run')}", "--servers=1",
                               "--workers=1", "--listen=tcp://127.0.0.1:0", f"--address_file={address}")
        wait_until(lambda: address.exists() or scheduler.poll() is not None, 30, "the scheduler's address")
        reach = f"--scheduler={address.read_text().strip()}"
        self.serve("hdps-server", reach)
        # The worker is missing.
        self.assertEqual(self.ask("hdps-server", "/healthz", token=False)[0], 200)
        self.assertEqual(self.ask("hdps-server", "/readyz", token=False)[0], 503)
        self.assertEqual(self.ask("hdps-server", "/metrics", token=False)[0], 401)
        self.serve("hdps-worker", reach)
        for name, figures in (("hdps-worker", ("hdps_worker_examples_total", "hdps_worker_pull_seconds_count")),
                              ("hdps-server", ("hdps_server_pulls_total", "hdps_server_rows"))):
            wait_until(lambda n=name: self.ask(n, "/readyz", token=False)[0] == 200, 30, f"{name} is ready")
            for figure in figures:
                wait_until(lambda n=name, f=figure: self.value(n, f) > 0, 30, f"{figure} of {name}")
            before = self.value(name, figures[0])
            wait_until(lambda n=name, f=figures[0], b=before: self.value(n, f) > b, 30, f"{figures[0]} grows")
            self.assertGreater(self.value(name, "process_resident_memory_bytes"), 2**20)
            self.assertEqual(self.value(name, "hdps_build_info"), 1)
            told = json.loads(self.ask(name, "/api/v1/figures")[1])
            self.assertEqual((told["schema"], told["role"], told["rank"]), (1, name[5:], 0))
            self.assertGreater(told["figures"]["process_open_fds"], 3)
            self.assertIn(f"hdps {name[5:]} 0 of job 'reference_small'", self.ask(name, "/")[1])
            self.assertEqual(self.ask(name, "/api/v1/page")[0], 404)


if __name__ == "__main__":
    main()
