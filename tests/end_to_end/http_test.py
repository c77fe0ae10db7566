#!/usr/bin/env python3
"""--http of real programs: TLS, tokens and where they may stand, and mistakes of the flags."""
import http.client
import os
import re
import signal
import socket
import ssl
import subprocess

import harness

TOKEN = "0123456789abcdef0123456789abcdef"


def certificate(folder, name):
    """A certificate of localhost that signs itself, and its key."""
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    harness.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                 "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-days", "2",
                 "-keyout", key, "-out", cert])
    key.chmod(0o600)
    return cert, key


class HttpCase(harness.DaemonsCase):
    def setUp(self):
        super().setUp()
        data = harness.generate(self.out("data"), rows=64, eval_rows=64)
        self.job = harness.write_job(self.out("job.json"), harness.reference_job(data, epochs=1))

    def secret(self, name, text, mode=0o600):
        path = self.out(name)
        path.write_text(text)
        path.chmod(mode)
        return path

    def scheduler(self, *flags, stderr=subprocess.PIPE):
        """A scheduler that waits for members all its life; returns it with its first lines up to where to look."""
        log = self.out("scheduler.log")
        process = self.start("hdps-scheduler", f"--job={self.job}", f"--out={self.out('run')}",
                             "--listen=tcp://127.0.0.1:0", f"--log_file={log}", *flags, stderr=stderr)
        harness.wait_until(lambda: log.exists() and "watch at" in log.read_text(), 30, "the line that says where to look")
        return process, re.findall(r"watch at (https?)://([\d.]+):(\d+)/", log.read_text())[-1]

    @staticmethod
    def ask(port, path, token=None, context=None, method="GET"):
        """Returns status, headers and body."""
        kind = http.client.HTTPSConnection if context else http.client.HTTPConnection
        connection = kind("localhost", port, timeout=30, **({"context": context} if context else {}))
        try:
            connection.request(method, path, headers={"Authorization": f"Bearer {token}"} if token else {})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read().decode()
        finally:
            connection.close()


class Looking(HttpCase):
    def test_tls_begins_with_version_1_2(self):
        cert, key = certificate(self.folder, "cert")
        token = self.secret("token", TOKEN + "\n")
        _, (scheme, host, port) = self.scheduler("--http=*:0", f"--http_cert={cert}", f"--http_key={key}",
                                                 f"--http_token_file={token}")
        self.assertEqual(scheme, "https")
        context = ssl.create_default_context(cafile=cert)
        harness.wait_until(lambda: self.ask(port, "/healthz", context=context)[0] == 200, 30, "a loop that turns")
        self.assertEqual(self.ask(port, "/metrics", context=context)[0], 401)
        harness.wait_until(lambda: self.ask(port, "/metrics", TOKEN, context)[0] == 200, 30, "the first figures")
        status, headers, _ = self.ask(port, f"/?token={TOKEN}", context=context)
        self.assertEqual((status, headers["Location"]), (303, "/"))
        self.assertEqual(headers["Set-Cookie"], f"hdps_{port}={TOKEN}; Path=/; HttpOnly; SameSite=Strict; Secure")
        for version, accepted in (("TLSv1_3", True), ("TLSv1_2", True), ("TLSv1_1", False), ("TLSv1", False)):
            old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
            old.set_ciphers("ALL:@SECLEVEL=0")
            old.minimum_version = old.maximum_version = ssl.TLSVersion[version]
            with socket.create_connection(("127.0.0.1", int(port)), timeout=30) as plain:
                if accepted:
                    with old.wrap_socket(plain) as inside:
                        self.assertEqual(inside.version().replace(".", "_"), version)
                else:  # The client is willing.
                    with self.assertRaises(OSError) as refused:
                        old.wrap_socket(plain)
                    self.assertNotRegex(str(refused.exception), "(?i)no.protocols|no.ciphers|unsupported")
        # Who speaks no TLS is not answered, and harms nobody.
        with socket.create_connection(("127.0.0.1", int(port)), timeout=30) as plain:
            plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertNotIn(b"HTTP", plain.recv(1000))
        harness.wait_until(lambda: self.ask(port, "/healthz", context=context)[0] == 200, 30, "a loop that turns")

    def test_a_drawn_token_goes_to_the_terminal_and_into_no_log(self):
        process, (_, _, port) = self.scheduler()
        line = next(line for line in process.stderr if "watch at" in line)
        token = re.search(rf"^hdps-scheduler: watch at http://127\.0\.0\.1:{port}/\?token=([0-9a-f]{{32}})$", line)[1]
        self.assertNotEqual(self.ask(port, "/metrics", token)[0], 401)
        self.assertNotIn(token, self.out("scheduler.log").read_text())
        process.kill()
        process.wait()
        self.out("scheduler.log").unlink()
        with open(self.out("stderr"), "w", encoding="utf-8") as stderr:
            self.scheduler(stderr=stderr)
        harness.wait_until(lambda: "watch at" in self.out("stderr").read_text(), 30, "the line on stderr")
        said = self.out("stderr").read_text()
        self.assertNotRegex(said, "[0-9a-f]{32}")
        self.assertIn("with a token that no log may hold: give --http_token_file=FILE", said)

    def test_the_launcher_shows_one_address_that_outlives_its_scheduler(self):
        out = self.out("cluster")
        launcher = self.start_command(harness.ROOT / "scripts" / "local_cluster.sh", f"--job={self.job}", f"--out={out}",
                                      "--workers=1", "--workers_come", env={"HDPS_BIN": str(harness.BIN)})
        line = next(line for line in launcher.stderr if line.startswith("local_cluster.sh: watch at"))
        _, port, token = re.search(r"watch at http://([\d.]+):(\d+)/\?token=([0-9a-f]{32})$", line).groups()
        harness.wait_until(lambda: self.ask(port, "/metrics", token)[0] == 200, 30, "the first figures")
        first = int((out / "pid" / "scheduler.pid").read_text())
        os.kill(first, signal.SIGKILL)

        def answers():
            try:
                return self.ask(port, "/metrics", token)[0] == 200
            except OSError:
                return False

        harness.wait_until(answers, 30, "the same address and token")
        self.assertNotEqual(int((out / "pid" / "scheduler.pid").read_text()), first)
        self.assertNotIn(token, (out / "log" / "scheduler.log").read_text())
        launcher.terminate()
        launcher.communicate(timeout=60)


class Mistakes(HttpCase):
    def test_each_ends_with_2_and_its_mend(self):
        cert, key = certificate(self.folder, "cert")
        _, other_key = certificate(self.folder, "other")
        token, open_token = self.secret("token", TOKEN), self.secret("open_token", TOKEN, 0o644)
        open_key = self.secret("open.key", key.read_text(), 0o640)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            mistakes = [
                (["--http=8080"], "write HOST:PORT, as 127.0.0.1:8080"),
                (["--http=ipc:///tmp/a"], "write HOST:PORT"),
                (["--http=127.0.0.1:70000"], "write HOST:PORT"),
                (["--http=no-such-host.invalid:0", "--insecure"], "give an IPv4 address of this machine"),
                (["--http=192.0.2.1:0", "--insecure"], "belongs to no network interface of this machine"),
                ([f"--http=127.0.0.1:{port}"], f"is in use by process {os.getpid()} (python3"),
                (["--http=0.0.0.0:0"], "other machines reach this address: give --http_token_file=FILE"),
                (["--http=0.0.0.0:0", f"--http_token_file={token}"], "--http_cert=FILE and --http_key=FILE for TLS"),
                ([f"--http_cert={cert}"], "TLS needs both; give --http_key=FILE"),
                ([f"--http_key={key}"], "TLS needs both; give --http_cert=FILE"),
                ([f"--http_cert={cert}", f"--http_key={other_key}"], "do not match; give a certificate and its key"),
                ([f"--http_cert={key}", f"--http_key={cert}"], "--http_key="),
                ([f"--http_cert={token}", f"--http_key={key}"], "give a certificate and its key as PEM"),
                ([f"--http_cert={cert}", f"--http_key={open_key}"], f"chmod 600 {open_key}"),
                ([f"--http_cert={cert}", f"--http_key={self.out('none')}"], "--http_key="),
                ([f"--http_token_file={self.out('none')}"], "make one with (umask 077; openssl rand -hex 16 > FILE)"),
                ([f"--http_token_file={open_token}"], f"chmod 600 {open_token}"),
                ([f"--http_token_file={self.secret('short', 'abc')}"], "it holds no token, which is 22 to 128 letters"),
                (["--http_names=http://a"], "write names without ports"),
                (["--http=none", "--http_names=a"], "nothing is served; give --http=HOST:PORT as well"),
            ]
            for flags, mend in mistakes:
                with self.subTest(flags=flags):
                    done = harness.run([harness.program("hdps-scheduler"), f"--job={self.job}", f"--out={self.out('run')}",
                                        "--listen=tcp://127.0.0.1:0", *flags], expect=2)
                    self.assertIn("--http", done.stderr)
                    self.assertIn(mend, done.stderr)
        harness.figure(f"planted mistakes of --http that end with 2 and their mend: {len(mistakes)}")

    def test_a_token_must_be_given_beyond_this_machine_or_insecure_is_said(self):
        process, _ = self.scheduler("--http=0.0.0.0:0", "--insecure")
        line = next(line for line in process.stderr if "warning: --insecure: http" in line)
        self.assertIn("reaches beyond this machine without --http_token_file without TLS: whoever", line)


if __name__ == "__main__":
    harness.main()
