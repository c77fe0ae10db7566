"""Tests the day in small: a job trains on what its own answers brought, and the answers follow what users like."""
import json
import re
import subprocess
import sys
import unittest

import harness

DAY = harness.ROOT / "examples" / "serving" / "day.py"
HOURS = 6


class ServeDay(harness.Case):
    def test_answers_follow_what_is_planted(self):
        out = self.out("day")
        done = subprocess.run([sys.executable, DAY, f"--hours={HOURS}", f"--out={out}",
                               f"--bin={harness.BIN}"], capture_output=True, text=True, timeout=240)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        hours = json.loads((out / "auc.json").read_text())
        self.assertEqual(len(hours), HOURS)
        answers, first, best = zip(*hours)
        # An hour has 2,000 rows, so the error of an AUC near 0.75 is about 0.011 (Hanley and McNeil 1982).
        self.assertGreater(answers[-1], answers[0] + 0.05, "answers get better")
        self.assertGreater(answers[-1], first[-1] + 0.1, "a model that stays gets worse")
        self.assertGreater(answers[-1], best[-1] - 0.08, "answers come near the planted probabilities")
        # Each hour was answered by the version that the hour before it made.
        steps = [int(step) for step in re.findall(r"step +(\d+)", done.stdout)]
        self.assertEqual(steps, sorted(set(steps)))
        harness.figure(f"AUC of the answers {answers[0]:.3f} in the first hour and {answers[-1]:.3f} in hour {HOURS}, when "
                       f"the first model has {first[-1]:.3f} and the planted probabilities {best[-1]:.3f}")


if __name__ == "__main__":
    harness.main()
