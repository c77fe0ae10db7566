"""A census job under scripts/local_cluster.sh, whose processes a test kills."""
import json
import os
import signal
import subprocess
import time

import harness

SETS = {"train.epochs": 16, "train.eval_each_epoch": False, "checkpoint.every_steps": 100,
        "cluster.heartbeat_ms": 100, "cluster.dead_after_ms": 2000}


class Launched:
    """A job under scripts/local_cluster.sh, which starts again what dies."""

    def __init__(self, out, servers=2, workers=2, sets=None, extra=()):
        self.out = out
        self.process = subprocess.Popen(
            [str(harness.ROOT / "scripts" / "local_cluster.sh"), f"--job={harness.CENSUS}", f"--out={out}",
             f"--servers={servers}", f"--workers={workers}", *extra, *harness.merged_settings({**SETS, **(sets or {})})],
            env={**os.environ, "HDPS_BIN": str(harness.BIN)}, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        harness.wait_until(lambda: self.events("step"), 60, "the first line of metrics.jsonl")

    def events(self, field):
        path = self.out / "metrics.jsonl"
        if not path.exists():
            return []
        lines = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
        return [line for line in lines if field in line]

    def training(self):
        return self.process.poll() is None and not (self.out / "summary.json").exists()

    def pid(self, member):
        try:
            return int((self.out / "pid" / f"{member}.pid").read_text())
        except (OSError, ValueError):
            return None

    def kill(self, *members):
        """-9; true when one of them was there and the job was not over."""
        hit = False
        for member in members:
            pid = self.pid(member)
            if pid and self.training():
                try:
                    os.kill(pid, signal.SIGKILL)
                    hit = True
                except ProcessLookupError:
                    pass
        return hit

    def longest_silence(self):
        """Until the job ends: the longest time without news of a step, which come with every checkpoint."""
        last, steps, longest = time.monotonic(), len(self.events("step")), 0
        while self.training():
            time.sleep(0.02)
            news = len(self.events("step"))
            if news > steps:
                longest, last, steps = max(longest, time.monotonic() - last), time.monotonic(), news
        return longest

    def end(self, case):
        said = self.process.communicate(timeout=240)[0]
        case.assertEqual(self.process.returncode, 0, said[-3000:])
        case.assertEqual(harness.processes_with(str(self.out)), [])
        return harness.summary_of(self.out)
