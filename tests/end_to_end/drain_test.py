"""Stops jobs while processes die: tests what is saved, the status, and how the next run continues."""
import fcntl
import json
import os
import pty
import signal
import subprocess

import harness

SETS = {"train.epochs": 4, "cluster.heartbeat_ms": 100, "cluster.dead_after_ms": 1500}
# Steps are made long, so that the stop meets the job while it trains.
SLOWLY = "point=worker.step.computed:sleep=4ms@1.."
MEMBERS = ("server_0", "server_1", "worker_0", "worker_1")
ALL = ("scheduler", *MEMBERS)


class Drains(harness.Case):
    summaries = {}

    def setUp(self):
        super().setUp()
        self.running = []
        self.addCleanup(self.end_all)

    def end_all(self):
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.communicate()
        for number in harness.processes_with(str(self.folder)):
            os.kill(number, signal.SIGKILL)

    def environment(self, faults=""):
        return {**os.environ, "HDPS_BIN": str(harness.BIN), "TMPDIR": str(self.folder),
                "HDPS_FAULTS": faults}

    def command(self, out, sets=None, flags=()):
        return [str(harness.ROOT / "scripts" / "local_cluster.sh"), f"--job={harness.CENSUS}",
                f"--out={out}", "--servers=2", "--workers=2", "--threads=1", *flags,
                *harness.merged_settings({**SETS, **(sets or {})})]

    def start(self, out, sets=None, flags=()):
        """A launcher whose job has trained twenty steps."""
        with open(f"{out}.said", "w") as said:
            launcher = subprocess.Popen(self.command(out, sets, flags), stdin=subprocess.DEVNULL,
                                        stdout=said, stderr=said, env=self.environment(SLOWLY))
        self.running.append(launcher)
        self.wait_for_step(out, 20)
        return launcher

    def said(self, out):
        return (self.folder / f"{out.name}.said").read_text()

    def wait_for_step(self, out, step):
        harness.wait_until(lambda: self.reported(out) >= step, 60, f"step {step}")

    def reported(self, out):
        metrics = out / "metrics.jsonl"
        lines = metrics.read_text().splitlines() if metrics.exists() else []
        steps = [json.loads(line).get("step", -1) for line in lines if line.endswith("}")]
        return max(steps, default=-1)

    def signal(self, out, name, number):
        os.kill(int((out / "pid" / f"{name}.pid").read_text()), number)

    def drain_and_kill(self, out, launcher, killed, stopped):
        """Kills within the drain, which cannot end while `stopped` stands still."""
        self.signal(out, stopped, signal.SIGSTOP)
        launcher.send_signal(signal.SIGTERM)
        harness.wait_until(lambda: "stopping: " in self.said(out), 30, "the stop is heard of")
        for name in killed:
            self.signal(out, name, signal.SIGKILL)
        if stopped not in killed:
            self.signal(out, stopped, signal.SIGCONT)

    def finish(self, out, launcher, expect):
        code = launcher.wait(90)
        self.assertEqual(code, expect, self.said(out)[-4000:])
        self.assertEqual(harness.processes_with(str(out)), [])

    def undisturbed(self, sets):
        key = json.dumps(sets)
        if key not in Drains.summaries:
            Drains.summaries[key] = harness.train(harness.CENSUS, self.out("plain"), 2, 2,
                                                  {**SETS, **(sets or {})})
        return Drains.summaries[key]

    def goes_on(self, out, sets=None):
        """The next start trains all that is left, to the digest of a job that nobody stopped."""
        done = harness.run(self.command(out, sets), env=self.environment())
        summary, plain = harness.summary_of(out), self.undisturbed(sets)
        self.assertIsNone(summary["stopped_at"])
        for field in ("steps", "digest"):
            self.assertEqual(summary[field], plain[field], done.stderr[-3000:])
        return done.stderr

    def saves_what_was_reached(self, name, killed, stopped, sets=None):
        out = self.out(name)
        launcher = self.start(out, sets)
        self.drain_and_kill(out, launcher, killed, stopped)
        reached = self.reported(out)
        self.finish(out, launcher, 0)
        summary = harness.summary_of(out)
        self.assertGreaterEqual(summary["stopped_at"], reached)
        self.assertLess(summary["stopped_at"], self.undisturbed(sets)["steps"])
        self.assertGreaterEqual(summary["failures_survived"], 1)
        self.goes_on(out, sets)
        harness.figure(f"kill -9 of {', '.join(killed)} in a drain: status 0, {reached} steps were "
                       f"reported, saved at {summary['stopped_at']}, the next start ends with the "
                       "digest of an undisturbed job")

    def test_the_scheduler_is_killed(self):
        self.saves_what_was_reached("scheduler", ("scheduler",), "worker_0")

    @harness.at_night
    def test_a_worker_is_killed(self):
        self.saves_what_was_reached("worker", ("worker_1",), "worker_1")

    @harness.at_night
    def test_a_server_is_killed(self):
        self.saves_what_was_reached("server", ("server_0",), "server_0")

    def test_with_copies_a_server_and_a_worker_are_killed(self):
        self.saves_what_was_reached("copies", ("server_0", "worker_0"), "server_0",
                                    {"cluster.replicas": 1})

    def test_all_are_killed(self):
        """The launcher was told, and tells whoever it starts again."""
        self.saves_what_was_reached("all", ALL, "worker_0")

    def test_a_stop_is_over_with_its_run(self):
        """All of a run die in its drain: the next one does not end at its first step."""
        out = self.out("gone")
        launcher = self.start(out)
        self.signal(out, "worker_0", signal.SIGSTOP)
        self.signal(out, "scheduler", signal.SIGTERM)
        harness.wait_until(lambda: '"stop": true' in self.state(out), 30, "the stop is kept")
        launcher.kill()
        for number in harness.processes_with(str(out)):
            os.kill(number, signal.SIGKILL)
        launcher.wait()
        left, = self.folder.glob("hdps_cluster.*")
        harness.wait_until(lambda: self.is_free(left / "lock"), 30, "the end of all")
        self.assertIn("the run before this one was told to stop; this one goes on", self.goes_on(out))
        self.assertEqual(list(self.folder.glob("hdps_cluster.*")), [], "of the launcher that was killed")

    def is_free(self, lock):
        with open(lock) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return True

    def state(self, out):
        state = out / "scheduler.state"
        try:
            return json.dumps(harness.scheduler_state(state))
        except (OSError, ValueError):
            return ""

    def test_who_is_not_started_again_ends_the_job_and_not_the_next(self):
        out = self.out("never")
        launcher = self.start(out, flags=["--restart=never"])
        self.drain_and_kill(out, launcher, ("scheduler",), "worker_0")
        self.finish(out, launcher, 3)
        self.goes_on(out)

    def test_a_closed_terminal_drains(self):
        """All of its processes are told at once, and nobody reads what they say."""
        out = self.out("terminal")
        launcher, terminal = pty.fork()
        if launcher == 0:
            os.execve(self.command(out)[0], self.command(out), self.environment(SLOWLY))
        try:
            self.wait_for_step(out, 20)
        finally:
            os.close(terminal)
        status = os.waitstatus_to_exitcode(os.waitpid(launcher, 0)[1])
        self.assertEqual(status, 0, (out / "log" / "scheduler.log").read_text()[-3000:])
        self.assertGreaterEqual(harness.summary_of(out)["stopped_at"], 20)
        self.assertEqual(harness.processes_with(str(out)), [])

    def test_a_hang_up_of_any_member_drains(self):
        for name in ("scheduler", "server_1", "worker_1"):
            with self.subTest(name=name):
                out = self.out(f"hang_up_of_{name}")
                launcher = self.start(out)
                self.signal(out, name, signal.SIGHUP)
                self.finish(out, launcher, 0)
                self.assertGreaterEqual(harness.summary_of(out)["stopped_at"], 20)


if __name__ == "__main__":
    harness.main()
