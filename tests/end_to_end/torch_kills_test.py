"""Kills a server, a worker or the scheduler by kill -9 while the examples in PyTorch train as workers of daemons. The
job ends with status 0, and with the digest of an undisturbed run: of its rows, and of the dense layers, which are rows
too (wide_deep.py) or the state of a worker (dlrm.py).

HDPS_TORCH_KILLS is the number of kills; HDPS_TORCH_KILLS_SEED the number of the first one.
"""
import importlib.util
import os
import random
import shlex
import sys
import unittest

import harness

why = "".join(f"there is no {name}; " for name in ("hdps", "torch") if not importlib.util.find_spec(name))
TIMES = harness.asked("HDPS_TORCH_KILLS", 2, 80, "kills of a member under PyTorch")
FIRST_SEED = int(os.environ.get("HDPS_TORCH_KILLS_SEED", "0"))
STEPS, EVERY = 60, 20
SETS = {"train.max_steps": STEPS, "train.eval_every_steps": 0, "checkpoint.every_steps": EVERY,
        "cluster.heartbeat_ms": 200, "cluster.dead_after_ms": 3000, "cluster.replace_after_s": 30}
# A member, and the copies of the rows.
KINDS = [("server_1", 0), ("worker_0", 0), ("server_1", 1), ("scheduler", 0)]
# A program, and its workers.
PROGRAMS = [("wide_deep", 2), ("dlrm", 1)]
EXAMPLES = harness.ROOT / "examples" / "torch"


@unittest.skipIf(why, why)
class Kills(harness.Case):
    def run_cluster(self, name, program, workers, copies, kill=()):
        """Trains an example for 60 steps; `kill`: the member and the step before which it dies."""
        out = self.out(name)
        script = EXAMPLES / f"{program}.py"
        command = [sys.executable, script]
        if kill:
            command = [sys.executable, harness.ROOT / "tests" / "end_to_end" / "torch_kill.py", out, *kill, script]
        os.environ["OMP_NUM_THREADS"] = "1"  # Of each process beside others, as torchrun has it.
        summary = harness.cluster(EXAMPLES / f"{program}.json", out, 2, workers, {**SETS, "cluster.replicas": copies},
                                  extra=["--threads=1", f"--worker_command={shlex.join(map(str, command))}"])
        self.assertEqual(harness.processes_with(str(out)), [])
        return summary

    def test_a_member_dies(self):
        undisturbed = {}
        for i in range(FIRST_SEED, FIRST_SEED + TIMES):
            member, copies = KINDS[i % len(KINDS)]
            program, workers = PROGRAMS[(i + i // len(KINDS)) % len(PROGRAMS)]
            if program not in undisturbed:
                undisturbed[program] = self.run_cluster(program, program, workers, 0)
                self.assertEqual(undisturbed[program]["steps"], STEPS)
            step = random.Random(i).randrange(1, STEPS)
            with self.subTest(seed=i, program=program, member=member, copies=copies, step=step):
                found = self.run_cluster(f"seed_{i}", program, workers, copies, (member, step))
                self.assertTrue((self.out(f"seed_{i}") / "killed").exists())
                for key in ("digest", "steps"):
                    self.assertEqual(found[key], undisturbed[program][key],
                                     f"HDPS_TORCH_KILLS=1 HDPS_TORCH_KILLS_SEED={i} repeats it")
        harness.figure(f"kill -9 under PyTorch, {TIMES} times: the digests of undisturbed runs")


if __name__ == "__main__":
    harness.main()
