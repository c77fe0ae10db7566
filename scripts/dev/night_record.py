#!/usr/bin/env python3
"""Writes the result of scripts/night.sh into its page, in place of the previous one.

usage: scripts/dev/night_record.py PAGE HOW [RESULTS.xml] < STEPS

STEPS has a line per step: name|ok or FAILED|seconds. HOW describes the requested amounts. RESULTS.xml is
ctest's report; the figures of its fault tests are recorded too.
"""
import datetime
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as tree

from test_summary import figures

OF_FAULTS = re.compile(r"end_to_end\.(soak|faults|failover|failpoints|replicas|spill_faults)$")
BEGIN, END = "<!-- result: begin -->", "<!-- result: end -->"


def machine():
    cpu = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return f"{os.cpu_count()} cores of {cpu[1] if cpu else 'an unknown processor'}"


def measured(results):
    """Returns the figures of the fault tests, a line each."""
    if not results.exists():
        return []
    cases = [(case.get("name"), case.findtext("system-out") or "")
             for case in tree.parse(results).iter("testcase")]
    lines = [f"- {figure}" for name, output in cases if OF_FAULTS.search(name)
             for figure in figures(output)]
    return ["", "What the tests of faults measured:", "", *lines] if lines else []


def table(steps, commit, where, day, how):
    rows = [line.split("|") for line in steps if line.strip()]
    minutes = sum(int(seconds) for _, _, seconds in rows) / 60
    return "\n".join([f"{day}, commit {commit}, {where}, {minutes:.0f} minutes; {how}.", "",
                      "| step | result | seconds |", "|---|---|---|",
                      *[f"| {name} | {verdict} | {seconds} |" for name, verdict, seconds in rows]])


def main():
    if len(sys.argv) not in (3, 4):
        print(__doc__, file=sys.stderr)
        return 2
    page = pathlib.Path(sys.argv[1])
    text = page.read_text()
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        print(f"night_record.py: error: {page} has not one line '{BEGIN}' and one '{END}'", file=sys.stderr)
        return 2
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                            check=False).stdout.strip() or "unknown"
    result = table(sys.stdin.read().splitlines(), commit, machine(), datetime.date.today().isoformat(),
                   sys.argv[2])
    result += "\n".join(["", *measured(pathlib.Path(sys.argv[3]))] if len(sys.argv) == 4 else [])
    page.write_text(text.split(BEGIN)[0] + f"{BEGIN}\n{result}\n{END}" + text.split(END)[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
