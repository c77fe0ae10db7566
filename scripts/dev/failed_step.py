#!/usr/bin/env python3
"""Prints what failed in a step of .ci/run, from its log: failed tests with the end of their output.

usage: scripts/dev/failed_step.py [--names] STEP.log
--names: only a line per failed test.
"""
import re
import sys

TESTS_MAX, LINES_MAX, NAMES_MAX, COLUMNS_MAX = 10, 40, 40, 160
# A line of ctest: " 3/12 Test  #7: end_to_end.keys .........***Failed    1.20 sec", or "...Subprocess
# aborted***Exception:   1.20 sec"; the output of the test follows.
RESULT = re.compile(r"^ *\d+/\d+ Test +#\d+: (.+?) \.{3,}( *([\w ]*\*\*\*.*?):? *[\d.]+ sec)?")
OTHER = re.compile(r"^ +Start +\d+: |^\d+% tests passed")
NO_FAILURE = ("Skipped", "Not Run (Disabled)")
# A line of ctest's list at its end: "\t  7 - end_to_end.keys (Failed)".
LISTED = re.compile(r"^\s+\d+ - (.+) \(([A-Z][\w ]*)\)$")
# The line with the reason, from unittest, GoogleTest or a CHECK.
REASON = re.compile(r"^(\w*(Error|Exception)\b.*|.*: Failure|.*Check failed: .*)$")


def failed_tests(lines):
    """Returns [(name, verdict, output)] in the order in which the tests ended."""
    found, output = [], []
    for line in lines:
        result = RESULT.match(line)
        if result or OTHER.match(line):
            output = []
        if result and result[3] is not None and result[3].lstrip("* ") not in NO_FAILURE:
            found.append((result[1], result[3].lstrip("* ").replace("***", ", "), output))
        elif not result:
            output.append(line)
    known = {name for name, _, _ in found}
    listed = [LISTED.match(line) for line in lines]
    # A test whose own line is not as expected still stands in the list at the end.
    return found + [(entry[1].strip(), entry[2], ["see the whole log"]) for entry in listed
                    if entry and entry[2] not in NO_FAILURE and entry[1].strip() not in known]


def reason(output):
    told = [line for line in output if REASON.match(line)] or [line for line in output if line.strip()][-1:]
    return told[0].strip() if told else "it printed nothing"


def main():
    names_only = sys.argv[1] == "--names"
    lines = open(sys.argv[-1], errors="replace").read().splitlines()
    tests = failed_tests(lines)
    if names_only:
        for name, verdict, output in tests[:NAMES_MAX]:
            print(f"  {name}: {verdict}: {reason(output)}"[:COLUMNS_MAX])
        if len(tests) > NAMES_MAX:
            print(f"  and {len(tests) - NAMES_MAX} more")
        return
    if not tests:
        print("\n".join(lines[-LINES_MAX:]))
    for name, verdict, output in tests[:TESTS_MAX]:
        print(f"--- {name}: {verdict}; the end of what it printed:")
        print("\n".join(output[-LINES_MAX:]))


if __name__ == "__main__":
    main()
