"""Runs the example in JAX, which goes on from its checkpoint; JAX comes from PyPI, into build/, where long tests run."""
import importlib.util
import os
import re
import sys
import unittest

import harness

why = "" if importlib.util.find_spec("hdps") else "the Python package was not built: no pybind11 or Python's headers"
EXAMPLE = harness.ROOT / "examples" / "jax" / "wide_deep.py"
PACKAGES = ["jax[cpu]==0.10.2", "numpy"]
ROWS, BATCH = 32561, 256


def interpreter():
    """One with JAX, of the version that the package is built for; None where there is none."""
    if importlib.util.find_spec("jax"):
        return sys.executable
    if harness.SHARE and not (harness.BIN.parent / "jax_venv" / "done").exists():
        return None
    return harness.python_with("jax_venv", PACKAGES)


@unittest.skipIf(why, why)
class Jax(harness.Case):
    def said(self):
        """Runs the example in the folder of the test; returns what it says at its end: the loss and the step."""
        return harness.run([self.python, EXAMPLE], cwd=self.folder).stdout.strip().splitlines()[-1]

    def test_it_learns_and_goes_on(self):
        self.python = interpreter()
        if self.python is None:
            self.skipTest("JAX is not installed, and this run installs nothing from PyPI")
        said = self.said()
        loss, steps = re.fullmatch(r"loss ([\d.]+) after (\d+) steps", said).groups()
        self.assertEqual(int(steps), -(-ROWS // BATCH))
        self.assertLess(float(loss), 0.36)  # One that knows the share of ones alone has 0.55.
        # Rows, dense layers and the place in the data come back, and there is nothing left to train.
        self.assertEqual(self.said(), said)
        harness.figure(f"Wide&Deep in JAX over hdps' rows: {said}")


if __name__ == "__main__":
    os.environ["JAX_PLATFORMS"] = "cpu"
    harness.main()
