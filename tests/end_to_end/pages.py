"""The pages of the project, and a folder in which their commands run as from its root."""
import os
import re
import subprocess
import time

import harness

README = harness.ROOT / "README.md"
DOCS = harness.ROOT / "docs"
TUTORIAL = DOCS / "tutorial.md"
EXTENDING = DOCS / "extending.md"
PYTORCH = DOCS / "pytorch.md"
RECORDS = DOCS / "records"
RUN_FILES = DOCS / "run_files.md"


def for_users():
    """README.md and every page of docs/ but the records."""
    return [README, *sorted(p for p in DOCS.rglob("*.md") if RECORDS not in p.parents)]


def blocks(page, language):
    """The blocks of code of one language, in the order of the page."""
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.S)


class Case(harness.Case):
    """A test with a folder that looks like the root of the project, so that `out/` is the test's own."""

    def setUp(self):
        super().setUp()
        for name in ("examples", "scripts", "docs"):
            os.symlink(harness.ROOT / name, self.folder / name)
        (self.folder / "build").mkdir()
        for part in ("bin", "python"):
            os.symlink(harness.BIN.parent / part, self.folder / "build" / part)

    def shell(self, text):
        """Runs lines of a shell, which have to succeed; returns what they print."""
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=self.folder,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600,
                              env={**os.environ, "HDPS_BIN": str(harness.BIN)})
        self.assertEqual(done.returncode, 0, f"{text}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}")
        return done.stdout

    def run_commands(self, page, at_least=1):
        """Runs each block of shell commands of a page, and returns the seconds of all of them."""
        found = blocks(page, "sh")
        self.assertGreaterEqual(len(found), at_least, page)
        total = 0
        for block in found:
            # This test is one of test.sh's: there it only lists them. What is built is built.
            block = block.replace("scripts/test.sh ", "scripts/test.sh -N ")
            if "build.sh" in block or "test.sh" in block:
                if harness.BIN != harness.ROOT / "build" / "bin":
                    continue
            began = time.monotonic()
            self.shell(block)
            seconds = time.monotonic() - began
            total += seconds
            print(f"{seconds:6.1f} s  $ {block.strip().splitlines()[0]}", flush=True)
        return total
