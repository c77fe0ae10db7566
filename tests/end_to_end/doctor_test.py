"""Plants faults on this machine: hdps doctor must report each with a remedy."""
import resource
import socket
import subprocess
import time

import harness

HDPS = harness.program("hdps")


class Doctor(harness.Case):
    def asked(self, *flags, out=None, expect=0, limits=()):
        def set_limits():
            for limit, value in limits:
                resource.setrlimit(limit, (value, value))
        done = subprocess.run([str(c) for c in (HDPS, "doctor", f"--job={harness.CENSUS}",
                                                f"--out={out or self.out('out')}", *flags)],
                              capture_output=True, text=True, timeout=60, preexec_fn=set_limits)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout

    def fault(self, subject, *needles, **asked):
        said = self.asked(*asked.pop("flags", ()), expect=2, **asked)
        faults = [line for line in said.splitlines() if line.startswith("FAULT")]
        harness.figure(faults[0] if faults else said)
        self.assertEqual(len(faults), 1, said)
        self.assertEqual(faults[0].split()[1], subject)
        for needle in needles:
            self.assertIn(needle, faults[0])

    def test_nothing_is_wrong(self):
        said = self.asked("--rows=20000", "--servers=2", "--workers=2")
        harness.figure("\n" + said)
        self.assertIn("0 fault(s)", said)
        self.assertEqual(list(self.out("out").iterdir()), [], "something was left behind")

    def test_planted_faults(self):
        """In five seconds each."""
        taken = socket.socket()
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        self.addCleanup(taken.close)
        port = taken.getsockname()[1]
        refusing, closed = harness.refusing_socket()
        self.addCleanup(refusing.close)
        begin = time.monotonic()
        self.assertIn("can be reached", self.asked(f"--scheduler=tcp://127.0.0.1:{port}"))
        self.assertIn("is free", self.asked("--listen=tcp://127.0.0.1:0"))
        self.fault("listen", str(port), "in use", flags=[f"--listen=tcp://127.0.0.1:{port}"])
        self.fault("listen", "--insecure", flags=["--listen=tcp://*:0"])
        self.fault("scheduler", "nobody listens", str(closed), flags=[f"--scheduler=tcp://127.0.0.1:{closed}"])
        self.fault("scheduler", "no.such.name", "unknown here",
                   flags=["--scheduler=tcp://no.such.name.invalid:5", "--insecure"])
        self.fault("out", "/proc/nowhere", out="/proc/nowhere")
        self.fault("open", "40", "ulimit -n", limits=[(resource.RLIMIT_NOFILE, 40)],
                   flags=["--servers=8", "--workers=8"])
        self.fault("memory", "8.00 TiB", "cluster.memory_limit", flags=["--set=cluster.memory_limit=8TiB"])
        self.assertLess((time.monotonic() - begin) / 9, 5)

    def test_another_run_in_the_folder(self):
        out = self.out("busy")
        run = subprocess.Popen([str(c) for c in (HDPS, "train", f"--job={harness.CENSUS}", f"--out={out}",
                                                 "--set=train.epochs=1000")],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        harness.wait_until(lambda: (out / "metrics.jsonl").exists(), 60, "the run")
        self.fault("out", "hdps train", out=out)


if __name__ == "__main__":
    harness.main()
