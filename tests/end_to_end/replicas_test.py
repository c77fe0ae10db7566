"""Kills servers while others hold copies of their rows, with real processes. The digests compared with are those of
tables that keep their rows apart."""
import json
import os
import signal
import subprocess

import harness

# Settings under which a loss is noticed soon.
FAST = {"cluster.replicas": 1, "cluster.dead_after_ms": 1000, "cluster.heartbeat_ms": 100, **harness.SAME_FEATURES}


class ReplicasTest(harness.DaemonsCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.job = harness.CENSUS

    def start(self, name, *flags):
        return super().start(name, f"--job={self.job}", *flags, stderr=subprocess.STDOUT)

    def start_job(self, sets):
        """Three servers with a copy of each row, two workers; returns when steps are trained."""
        flags = harness.merged_settings(sets)
        self.run_folder = self.out("run")
        self.run_folder.mkdir(parents=True, exist_ok=True)
        address = self.run_folder / "address"
        self.scheduler = self.start("hdps-scheduler", f"--out={self.run_folder}", "--servers=3",
                                    "--workers=2", "--listen=tcp://127.0.0.1:0",
                                    f"--address_file={address}", *flags)
        harness.wait_until(lambda: address.exists() and address.read_text().strip(), 30, "address")
        self.member = [f"--scheduler={address.read_text().strip()}", "--servers=3", "--workers=2",
                       *flags]
        self.servers = [self.start_server(rank) for rank in range(3)]
        self.workers = [self.start("hdps-worker", f"--rank={r}", *self.member) for r in range(2)]
        self.metrics = self.run_folder / "metrics.jsonl"
        harness.wait_until(lambda: self.events("step"), 60, "training")

    def start_server(self, rank):
        return self.start("hdps-server", f"--rank={rank}", "--listen=tcp://127.0.0.1:0",
                          *self.member)

    def events(self, name):
        if not self.metrics.exists():
            return []
        lines = [json.loads(l) for l in self.metrics.read_text().splitlines(keepends=True)
                 if l.endswith("\n")]
        return [line for line in lines if name in line or line.get("event") == name]

    def finish(self):
        """Status 0 of all that still live; what the scheduler said, and its summary."""
        said, _ = self.scheduler.communicate(timeout=180)
        self.assertEqual(self.scheduler.returncode, 0, said)
        for process in [*self.servers, *self.workers]:
            log, _ = process.communicate(timeout=30)
            self.assertIn(process.returncode, (0, -signal.SIGKILL), log)
            self.assertEqual(harness.JOINED in log, process in self.servers, log)
        return said, harness.summary_of(self.run_folder)

    def test_a_killed_server_costs_no_step(self):
        """kill -9 of one of three servers: the others go on, and the rows are those of a whole run."""
        sets = {**FAST, "train.epochs": 12}
        whole = harness.train(self.job, self.out("whole"), 3, 2, {**sets, **harness.APART})
        self.start_job(sets)
        os.kill(self.servers[1].pid, signal.SIGKILL)
        said, summary = self.finish()
        line = [l for l in said.splitlines() if "no step is lost" in l][0]
        harness.figure(line)
        self.assertRegex(line, r"server 1 .*is lost.*server 2 .*goes on with group 1")
        self.assertIn("group 1 has no copy until a server joins", said)
        self.assertEqual(len(self.events("promoted")), 1)
        self.assertEqual(summary["digest"], whole["digest"])
        self.assertEqual((summary["failures_survived"], summary["steps_again"]), (1, 0))

    def test_copies_are_made_again(self):
        """A killed server is started again and gets its copies; then the next one dies, and no step is lost."""
        sets = {**FAST, "train.epochs": 40}
        whole = harness.train(self.job, self.out("whole"), 3, 2, {**sets, **harness.APART})
        self.start_job(sets)
        for turn, rank in enumerate([1, 2, 0]):
            os.kill(self.servers[rank].pid, signal.SIGKILL)
            harness.wait_until(lambda: len(self.events("promoted")) > turn, 30, "the loss")
            self.servers.append(self.start_server(rank))
            self.servers[rank] = self.servers[-1]
            harness.wait_until(lambda: len(self.events("scaled")) > turn, 30, "the copies")
        said, summary = self.finish()
        for line in said.splitlines():
            if "have come to another server" in line:
                harness.figure(line)
        self.assertEqual(summary["digest"], whole["digest"])
        self.assertEqual((summary["failures_survived"], summary["steps_again"]), (3, 0))


if __name__ == "__main__":
    harness.main()
