"""Kills any two members within half a second by kill -9, under scripts/local_cluster.sh: with copies and without,
while a server joins, in a drain, and after earlier deaths of the same member. The job ends with status 0 and the
result of an undisturbed run.

HDPS_TWO_KILLS is the number of runs; HDPS_TWO_KILLS_SEED the seed of the first, which grows by one each.
"""
import concurrent.futures
import itertools
import json
import os
import random
import re
import signal
import stat
import subprocess
import time

import harness

TIMES = harness.asked("HDPS_TWO_KILLS", 5, 20, "pairs of kills")
FIRST_SEED = int(os.environ.get("HDPS_TWO_KILLS_SEED", "0"))

SERVERS, WORKERS = [f"server_{i}" for i in range(3)], ["worker_0", "worker_1"]
ALL = ["scheduler", *SERVERS, *WORKERS]
STEPS, STEP_MS = 400, 10
SETS = {"train.batch_size": 256, "train.epochs": 100000, "train.max_steps": STEPS,
        "train.eval_each_epoch": False, "cluster.heartbeat_ms": 200, "cluster.dead_after_ms": 3000,
        "cluster.replace_after_s": 30}
WAITING = 120  # Seconds until any one thing that is waited for.

# The launcher gives up a member that dies five times in a minute.
EARLIER_DEATHS = 2
KINDS = ["plain", "scaling", "drain", "earlier deaths"]

WRAPPER = """#!/usr/bin/env bash
# The program of the same name, whose workers wait in each step.
faults=()
[[ "$0" == *worker ]] && faults=("--faults=point=worker.step.computed:sleep={step_ms}ms@1..")
exec {program} "$@" "${{faults[@]}}"
"""


def slow_programs(folder):
    folder.mkdir(parents=True)
    for role in ("scheduler", "server", "worker"):
        path = folder / f"hdps-{role}"
        path.write_text(WRAPPER.format(step_ms=STEP_MS, program=harness.program(path.name)))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return folder


class Round:
    """One job, and two kills; its seed decides all of it."""

    def __init__(self, folder, programs, seed):
        self.chance = random.Random(f"two kills {seed}")
        self.repeat = f"HDPS_TWO_KILLS=1 HDPS_TWO_KILLS_SEED={seed} repeats it"
        self.kind = KINDS[seed % len(KINDS)]
        self.replicas = (seed // len(KINDS)) % 2
        self.every = self.chance.choice([0, 60])
        self.whom = self.chance.sample(ALL, 2)
        self.out, self.programs = folder / f"seed_{seed}", programs
        self.said = folder / f"seed_{seed}.said"
        self.address = f"tcp://127.0.0.1:{harness.free_port()}"
        self.sets = {**SETS, "cluster.replicas": self.replicas, "checkpoint.every_steps": self.every}
        self.newcomer, self.stopped = None, False
        self.text = (f"seed {seed}: {self.kind}, {self.replicas} replicas, checkpoint every {self.every}, "
                     f"{' and '.join(self.whom)}")

    def start(self):
        with open(self.said, "a") as said:
            self.launcher = subprocess.Popen(
                [str(harness.ROOT / "scripts" / "local_cluster.sh"), f"--job={harness.CENSUS}",
                 f"--out={self.out}", f"--servers={len(SERVERS)}", f"--workers={len(WORKERS)}",
                 f"--listen={self.address}", "--threads=1", *harness.merged_settings(self.sets)],
                env={**os.environ, "HDPS_BIN": str(self.programs)}, stdin=subprocess.DEVNULL,
                stdout=said, stderr=said)

    def ended(self):
        return self.launcher.poll() is not None

    def until(self, condition, what):
        harness.wait_until(lambda: self.ended() or condition(), WAITING, f"{what}\n{self.describe()}")

    def step(self):
        metrics = self.out / "metrics.jsonl"
        lines = metrics.read_text() if metrics.exists() else ""
        return max([int(step) for step in re.findall(r'"step": ?(\d+)', lines)], default=-1)

    def pid(self, name):
        try:
            return int((self.out / "pid" / f"{name}.pid").read_text())
        except (OSError, ValueError):
            return None

    def kill(self, name):
        pid = self.pid(name)
        try:
            if pid is not None:
                os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # It has just ended.
        return pid

    def kill_both(self):
        first, second = self.whom
        self.kill(first)
        time.sleep(self.chance.uniform(0, 0.5))
        self.kill(second)

    def die_before(self):
        """The first of them dies, comes back and dies."""
        for _ in range(EARLIER_DEATHS):
            before = self.kill(self.whom[0])
            self.until(lambda: self.pid(self.whom[0]) not in (None, before), "it is started again")
            time.sleep(self.chance.uniform(0, 1))

    def scale(self):
        harness.run([harness.program("hdps"), "scale", f"--scheduler={self.address}", "--scale_servers=+1"],
                    expect=None)
        with open(self.said, "a") as said:
            self.newcomer = subprocess.Popen(
                [harness.program("hdps-server"), f"--job={harness.CENSUS}", "--threads=1",
                 f"--scheduler={self.address}", *harness.merged_settings(self.sets)],
                stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        time.sleep(self.chance.uniform(0, 1))

    def drain(self):
        """Told to stop while two of them die, it has saved what was reached; another run makes the rest."""
        reached = self.step()
        kill_first = self.chance.random() < 0.5
        if kill_first:
            self.kill(self.whom[0])
        self.launcher.terminate()
        self.kill_both()
        self.end()
        stopped_at = json.loads((self.out / "summary.json").read_text())["stopped_at"]
        if stopped_at is None:
            return  # It was at its end.
        self.stopped = True
        if stopped_at < reached:
            raise AssertionError(f"stopped at {stopped_at}, was at {reached} before\n{self.describe()}")
        self.start()
        self.end()

    def end(self):
        harness.wait_until(self.ended, WAITING, f"the job ends\n{self.describe()}")
        if self.launcher.returncode != 0:
            raise AssertionError(f"the launcher ended with {self.launcher.returncode}\n{self.describe()}")

    def run(self):
        """Returns the summary."""
        self.start()
        try:
            self.until(lambda: self.step() >= 0, "steps are made")
            time.sleep(self.chance.uniform(0, 1))
            if self.kind == "drain":
                self.drain()
            else:
                if self.kind == "earlier deaths":
                    self.die_before()
                if self.kind == "scaling":
                    self.scale()
                self.kill_both()
                self.end()
            if self.newcomer is not None:
                harness.wait_until(lambda: self.newcomer.poll() is not None, WAITING,
                                   f"the newcomer ends\n{self.describe()}")
            left = harness.processes_with(str(self.out))
            if left:
                raise AssertionError(f"processes are left: {left}\n{self.describe()}")
        finally:
            for process in (self.launcher, self.newcomer):
                if process is not None and process.poll() is None:
                    process.kill()
                if process is not None:
                    process.wait()
        return harness.summary_of(self.out)

    def describe(self):
        said = "\n".join(line for line in self.said.read_text().splitlines()
                         if "on purpose" not in line)
        return f"{self.text} ({self.repeat})\n{said[-6000:]}"


class TwoKills(harness.Case):
    def test_any_two_members_within_half_a_second(self):
        undisturbed = harness.train(harness.CENSUS, self.out("undisturbed"), len(SERVERS), len(WORKERS), SETS)
        programs = slow_programs(self.out("bin"))
        rounds = [Round(self.folder, programs, FIRST_SEED + i) for i in range(TIMES)]
        began = time.monotonic()

        def judged(one):
            """Empty: it ended as it should."""
            try:
                summary = one.run()
            except AssertionError as wrong:
                return str(wrong)
            wrong = [f"{key} is {summary[key]}, undisturbed {undisturbed[key]}"
                     for key in ("digest", "steps") if summary[key] != undisturbed[key]]
            return "\n".join([*wrong, one.describe()]) if wrong else ""

        # Much of the time nobody computes.
        with concurrent.futures.ThreadPoolExecutor(max_workers=3) as several:
            results = list(several.map(judged, rounds))
        failures = [result for result in results if result]
        kinds = ", ".join(f"{sum(one.kind == kind for one in rounds)} {kind}" for kind in KINDS)
        harness.figure(f"kill -9 of two members within 0.5 s: {TIMES} times ({kinds}; "
                       f"{sum(one.replicas for one in rounds)} with copies, "
                       f"{sum(one.stopped for one in rounds)} drains ended by another run), {len(failures)} that "
                       f"did not end with 0 and the digest {undisturbed['digest']}; "
                       f"{time.monotonic() - began:.0f} s")
        self.assertEqual(failures, [], "\n\n".join(itertools.islice(failures, 5)))


if __name__ == "__main__":
    harness.main()
