#!/usr/bin/env python3
"""What the tests measured, and which of them did not run and why, from ctest's own report.

usage: scripts/dev/test_summary.py RESULTS.xml
"""
import re
import sys
import xml.etree.ElementTree as tree

NEEDS_GPU = re.compile(r"no GPU|no CUDA|no NCCL", re.I)


def figures(output):
    return re.findall(r"figure: (.*)", output)


def lines(cases):
    """Yields what is to be said about [(name, skipped, output)]."""
    gpu, others = [], []
    for name, skipped, output in cases:
        for figure in figures(output):
            yield f"  {name}: {figure}"
        if skipped:
            (gpu if NEEDS_GPU.search(output) else others).append((name, output))
    if gpu:
        yield f"Nothing ran on a GPU: {len(gpu)} tests need one and were skipped:"
        yield from (f"  {name}" for name, _ in gpu)
    for name, output in others:
        why = re.search(r"skipped: (.*)", output) or re.search(r"Skipped\n(.*)", output)
        yield f"Skipped: {name}: {why[1].strip() if why else 'see the report'}"


def main():
    cases = [(case.get("name"), case.find("skipped") is not None or case.get("status") == "notrun",
              case.findtext("system-out") or "") for case in tree.parse(sys.argv[1]).iter("testcase")]
    print("\n".join(lines(cases)))


if __name__ == "__main__":
    main()
