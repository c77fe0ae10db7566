#!/usr/bin/env python3
"""Prints the tests' figures, and the tests that did not run with the reasons, from ctest's report.

usage: scripts/dev/test_summary.py RESULTS.xml
"""
import re
import sys
import xml.etree.ElementTree as tree

NEEDS_GPU = re.compile(r"no GPU|no CUDA|no NCCL", re.I)
# A skipped test in Python's output; a second line, if there is one, is the test's docstring.
PART_SKIPPED = re.compile(r"^(test\w+) \(\S+\)\n?(?:[^\n]*?) \.\.\. skipped (['\"])(.*)\2$", re.M)
OF_FULL_TESTS = "of the full tests"  # at_night() in tests/end_to_end/harness.py


def figures(output):
    return re.findall(r"figure: (.*)", output)


def parts_left_out(output):
    """Returns the parts that a test leaves out: (only in the full tests, impossible on this machine)."""
    full = re.findall(r"^left out: (.*)", output, re.M)
    lacking = {}
    for part, _, why in PART_SKIPPED.findall(output):
        if why == OF_FULL_TESTS:
            full.append(part)
        else:
            lacking.setdefault(why, []).append(part)
    return full, [f"{', '.join(parts)}: {why}" for why, parts in lacking.items()]


def longest(cases, count=10):
    """Describes the longest tests of [(name, seconds)], and the total."""
    named = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in sorted(cases, key=lambda case: -case[1])[:count])
    return f"{sum(seconds for _, seconds in cases):.0f} s of tests, one behind the other; the longest: {named}"


def lines(cases):
    """Yields the lines of the summary of [(name, skipped, output)]."""
    gpu, lacking, full = [], [], []
    for name, skipped, output in cases:
        for figure in figures(output):
            yield f"  {name}: {figure}"
        if skipped and NEEDS_GPU.search(output):
            gpu.append(name)
        elif skipped:
            why = re.search(r"skipped: (.*)", output) or re.search(r"Skipped\n(.*)", output)
            lacking.append(f"  {name}: {why[1].strip() if why else 'see the report'}")
        of_full, of_lacking = parts_left_out(output)
        lacking += [f"  {name}: {part}" for part in of_lacking]
        full += [f"  {name}: {'; '.join(dict.fromkeys(of_full))}"] if of_full else []
    if gpu:
        yield f"Nothing ran on a GPU: {len(gpu)} tests need one and were skipped:"
        yield from (f"  {name}" for name in gpu)
    if lacking:
        yield "Left out for what this machine lacks:"
        yield from lacking
    if full:
        yield "Left out, and run by scripts/test.sh --full, or one by HDPS_TESTS=all ctest --test-dir build -R NAME:"
        yield from full


def main():
    cases = list(tree.parse(sys.argv[1]).iter("testcase"))
    print(longest([(case.get("name"), float(case.get("time") or 0)) for case in cases]))
    print("\n".join(lines((case.get("name"), case.find("skipped") is not None or case.get("status") == "notrun",
                           case.findtext("system-out") or "") for case in cases)))


if __name__ == "__main__":
    main()
