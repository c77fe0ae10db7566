"""Servers that die while others hold copies of their rows, as processes."""
import os
import signal
import subprocess

import harness


class ReplicasTest(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.job = harness.CENSUS

    def setUp(self):
        super().setUp()
        self.running = []
        self.addCleanup(self.kill_all)

    def kill_all(self):
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def start(self, name, *flags):
        """A daemon of its own, so that a test decides who is started again."""
        process = subprocess.Popen([harness.program(name), f"--job={self.job}", *flags],
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.running.append(process)
        return process

    def test_a_killed_server_costs_no_step(self):
        """kill -9 of one of three servers: the others go on, and the rows are those of a whole run."""
        sets = {"cluster.replicas": 1, "cluster.dead_after_ms": 1000, "cluster.heartbeat_ms": 100,
                "train.epochs": 12}
        whole = harness.train(self.job, self.out("whole"), 3, 2, sets)
        out = self.out("run")
        out.mkdir(parents=True, exist_ok=True)
        flags = harness.merged_settings(sets)
        address = out / "address"
        scheduler = self.start("hdps-scheduler", f"--out={out}", "--servers=3", "--workers=2",
                               "--listen=tcp://127.0.0.1:0", f"--address_file={address}", *flags)
        harness.wait_until(lambda: address.exists() and address.read_text().strip(), 30, "address")
        member = [f"--scheduler={address.read_text().strip()}", "--servers=3", "--workers=2", *flags]
        servers = [self.start("hdps-server", f"--rank={r}", "--listen=tcp://127.0.0.1:0", *member)
                   for r in range(3)]
        workers = [self.start("hdps-worker", f"--rank={r}", *member) for r in range(2)]
        metrics = out / "metrics.jsonl"
        harness.wait_until(lambda: metrics.exists() and '"step"' in metrics.read_text(), 60, "training")
        os.kill(servers[1].pid, signal.SIGKILL)
        said, _ = scheduler.communicate(timeout=120)
        self.assertEqual(scheduler.returncode, 0, said)
        for process in [servers[0], servers[2], *workers]:
            self.assertEqual(process.wait(timeout=30), 0)
        summary = harness.summary_of(out)
        line = [l for l in said.splitlines() if "no step is lost" in l][0]
        harness.figure(line)
        self.assertRegex(line, r"server 1 .*is lost.*server 2 .*goes on with group 1")
        self.assertIn("group 1 has no copy until a server joins", said)
        self.assertIn('"event": "promoted"', metrics.read_text().replace('":"', '": "'))
        self.assertEqual(summary["digest"], whole["digest"])
        self.assertEqual((summary["failures_survived"], summary["steps_again"]), (1, 0))


if __name__ == "__main__":
    harness.main()
