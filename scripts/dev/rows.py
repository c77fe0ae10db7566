#!/usr/bin/env python3
"""Runs the tests of each row of docs/features.md and prints the rows that fall short.

usage: scripts/dev/rows.py [ROW...]         runs the tests of these rows, or of all, in build/
       scripts/dev/rows.py --ran=FILE       runs nothing: FILE is what scripts/test.sh left in build/test_results.xml
       scripts/dev/rows.py --check          only looks whether each named test is there
       scripts/dev/rows.py --self-test      plants a test that is not there, one that fails, and a row without tests

A row is a paragraph of a list: "- **S12 what it is.** *Setting*: ... *Tests*: ... *Figure*: ...". Its tests are names of ctest
in backticks, with * for any part of a name. Rows whose figure begins with "waits for" need a machine that is not at hand;
they are printed apart. Exits 1 if another row falls short.
"""
import argparse
import fnmatch
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "features.md"
ROWS = [f"S{i:02}" for i in range(1, 49)] + [f"X{i}" for i in range(1, 11)]
WAITS, ABSENT = "waits for ", "not there"


class Row:
    """One feature: its name, the patterns of its tests, and its figure."""

    def __init__(self, name, tests, figure):
        self.name = name
        self.tests = re.findall(r"`([^`]+)`", tests)
        self.figure = " ".join(figure.split())

    def waits(self):
        return self.figure.startswith(WAITS)

    def absent(self):
        return self.figure.startswith(ABSENT)


def rows_of(text):
    paragraphs = re.findall(r"^- \*\*([SX]\d+\w?) (.*?)(?=^- |^#|^$|\Z)", text, re.M | re.S)
    parts = [(name, re.split(r"\*Tests\*:|\*Figure\*:", body)) for name, body in paragraphs]
    return [Row(name, *fields[1:]) for name, fields in parts if len(fields) == 3]


def known_tests():
    """The number of each test by its name; some names hold spaces."""
    listed = subprocess.run(["ctest", "--test-dir", ROOT / "build", "-N"], check=True, capture_output=True, text=True)
    return {name: number for number, name in re.findall(r"^ *Test +#(\d+): (.+?) *$", listed.stdout, re.M)}


def matching(pattern, tests):
    """Tests of this name; those of a test with parameters have the name of its set before it, and a number behind."""
    return [name for form in (pattern, f"*/{pattern}", f"*/{pattern}/*", f"{pattern}/*")
            for name in fnmatch.filter(tests, form)]


def problems_of(rows, tests):
    """What can be told without running anything: rows and tests that are not there."""
    found = []
    stems = {re.sub(r"[a-z]$", "", row.name) for row in rows}
    for name in ROWS:
        if name not in stems:
            found.append(f"{name}: the page has no row")
    for row in rows:
        if not row.tests and not row.waits() and not row.absent():
            found.append(f"{row.name}: no test is named")
        for pattern in row.tests:
            if not matching(pattern, tests):
                found.append(f"{row.name}: no test is called {pattern}")
    return found


def states_of(results):
    """The state of each test in ctest's report: run, fail or notrun."""
    return {case.get("name"): case.get("status") for case in xml.etree.ElementTree.parse(results).getroot().iter("testcase")}


def outcomes(names, tests):
    """Runs these tests, and returns the state of each."""
    with tempfile.TemporaryDirectory() as folder:
        results = pathlib.Path(folder) / "results.xml"
        numbers = ",".join(str(tests[name]) for name in sorted(names))
        subprocess.run(["ctest", "--test-dir", ROOT / "build", "-j2", "--output-on-failure", "--output-junit", results,
                        "-I", f"0,0,0,{numbers}"], check=False, stdout=sys.stderr)
        return states_of(results)


def report(rows, tests, states):
    """Prints a line a row; returns how many fall short."""
    short = 0
    for row in rows:
        names = {name for pattern in row.tests for name in matching(pattern, tests)}
        skipped = {name for name in names if states.get(name) == "notrun"}
        failed = sorted(name for name in names - skipped if states.get(name) != "run") or (
            ["all were skipped"] if names and skipped == names else [])
        passed = f"{len(names - skipped)} tests" + (f", {len(skipped)} skipped here" if skipped else "")
        if row.absent():
            print(f"{row.name}: {row.figure}")
        elif failed:
            short += 1
            print(f"{row.name}: falls short: {', '.join(failed)}")
        elif row.waits():
            print(f"{row.name}: {row.figure}; passed {passed}")
        else:
            print(f"{row.name}: shown by {passed}")
    return short


def self_test():
    tests = {"Suite.IsThere": 1, "Suite.Fails": 2}
    plain = "- **{} a.** *Setting*: `s`. *Tests*: `Suite.IsThere`.\n  *Figure*: f.\n"
    page = "".join(plain.format(name) for name in ROWS)
    assert problems_of(rows_of(page), tests) == []
    fifth = plain.format("S05")
    for planted in (fifth.replace("IsThere", "Gone"), fifth.replace("`Suite.IsThere`", ""), fifth.replace("S05", "T05"), ""):
        assert len(problems_of(rows_of(page.replace(fifth, planted)), tests)) == 1
    failing = rows_of(plain.format("S01").replace("IsThere", "*"))
    assert report(failing, tests, {"Suite.IsThere": "run", "Suite.Fails": "fail"}) == 1
    assert report(failing, tests, {"Suite.IsThere": "run"}) == 1
    assert report(failing, tests, {"Suite.IsThere": "notrun", "Suite.Fails": "notrun"}) == 1
    assert report(failing, tests, {"Suite.IsThere": "run", "Suite.Fails": "notrun"}) == 0
    print("rows.py: what was planted was noticed")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--ran", metavar="FILE", type=pathlib.Path)
    parser.add_argument("rows", nargs="*")
    flags = parser.parse_args()
    if flags.self_test:
        return self_test()
    rows, tests = rows_of(PAGE.read_text()), known_tests()
    problems = problems_of(rows, tests)
    for problem in problems:
        print(f"rows.py: {problem}", file=sys.stderr)
    if problems or flags.check:
        return 1 if problems else 0
    unknown = set(flags.rows) - {row.name for row in rows}
    if unknown:
        print(f"rows.py: no row is called {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    chosen = [row for row in rows if not flags.rows or row.name in flags.rows]
    names = {name for row in chosen for pattern in row.tests for name in matching(pattern, tests)}
    short = report(chosen, tests, states_of(flags.ran) if flags.ran else outcomes(names, tests))
    print(f"rows.py: {len(chosen)} rows, {short} fall short")
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
