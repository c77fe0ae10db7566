#!/usr/bin/env python3
"""Runs a piece of what scripts/night.sh runs, at the lowest priority, and adds its result to docs/records/night.md.

usage: scripts/dev/night_piece.py kills|take_up|two_kills|soak AMOUNT [SEED]
       scripts/dev/night_piece.py fuzz SECONDS [TARGET...]

AMOUNT is a number of kills of each kind (take_up: of workers that are replaced in place), of pairs of kills, or seconds of
each soak. SEED is the number of the first; without it a piece begins behind the ones that are in the page. Ends with the
status of what it ran.
"""
import datetime
import os
import pathlib
import re
import subprocess
import sys
import textwrap
import time

from test_summary import figures

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "records" / "night.md"
END = "<!-- pieces: end -->"
# The test, what its amount and its first seed are called there.
TESTS = {"kills": ("failover", "HDPS_KILLS", "HDPS_KILLS_SEED"), "take_up": ("take_up", "HDPS_KILLS", "HDPS_KILLS_SEED"),
         "two_kills": ("two_kills", "HDPS_TWO_KILLS", "HDPS_TWO_KILLS_SEED"), "soak": ("soak", "HDPS_SOAK_SECONDS", "HDPS_SOAK_SEED")}
KILLS = re.compile(r"(\d+) (?:kills, every run right|workers killed, all replaced in place)")


def next_seed(page, kind):
    """The number behind the last one that the page has of a kind."""
    ends = [int(first) + (int(amount) if kind != "soak" else 1)
            for amount, first in re.findall(rf"^\| [^|]* \| [^|]* \| {kind} (\d+) from (\d+) ", page, re.M)]
    return max(ends, default=0)


def outcome(kind, status, said):
    """What the output of a piece comes to, in a few words."""
    if status:
        return f"FAILED with status {status}"
    if kind in ("kills", "take_up"):
        return f"{sum(map(int, KILLS.findall(said)))} kills of {len(KILLS.findall(said))} kinds, every run right"
    if kind == "fuzz":
        lines = re.findall(r"fuzz: (\S+) +(\d+) runs", said)
        return f"nothing found in {sum(int(runs) for _, runs in lines):,} runs: " + ", ".join(name for name, _ in lines)
    return textwrap.shorten("; ".join(figures(said)), 90, placeholder=" ...") or "passed"


def with_row(page, cells):
    return page.replace(END, "| " + " | ".join(cells) + " |\n" + END)


def main():
    words = sys.argv[1:]
    if len(words) < 2 or words[0] not in (*TESTS, "fuzz") or not words[1].isdigit():
        print(__doc__, file=sys.stderr)
        return 2
    kind, amount, root = words[0], words[1], PAGE.parents[2]
    page = PAGE.read_text()
    if page.count(END) != 1:
        print(f"night_piece.py: error: {PAGE} has not one line '{END}'", file=sys.stderr)
        return 2
    environment = dict(os.environ, HDPS_TESTS="all")
    if kind == "fuzz":
        name, command = f"fuzz {amount} s each", [root / "scripts" / "dev" / "fuzz.sh", amount, *words[2:]]
    else:
        test, count, seed = TESTS[kind]
        first = words[2] if len(words) > 2 else str(next_seed(page, kind))
        name, command = f"{kind} {amount} from {first}", [sys.executable, root / "tests" / "end_to_end" / f"{test}_test.py"]
        environment |= {count: amount, seed: first, "HDPS_BIN": environment.get("HDPS_BIN", str(root / "build" / "bin"))}
    began = time.monotonic()
    done = subprocess.run(["nice", "-n", "19", *map(str, command)], env=environment, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    print(done.stdout, end="")
    commit = subprocess.run(["git", "-C", root, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    cells = [datetime.date.today().isoformat(), commit.stdout.strip() or "unknown", name,
             outcome(kind, done.returncode, done.stdout), f"{time.monotonic() - began:.0f}"]
    PAGE.write_text(with_row(PAGE.read_text(), cells))  # Another piece may have ended meanwhile.
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
