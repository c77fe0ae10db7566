#!/usr/bin/env python3
"""Prints how many translation units of the programs, tests and benchmarks a change of each kind rebuilds.
It follows the #include lines of the sources, so it needs no build; a kind costs as much as the most
expensive of its files.

usage: scripts/dev/rebuilds.py [ROOT]          exits 1 if a kind rebuilds more than its limit
       scripts/dev/rebuilds.py --to HEADER...  headers that include a header, most expensive first
       scripts/dev/rebuilds.py --self-test     a kind above its limit, and one without files, are noticed
"""
import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ["common", "kernels", "embedding", "server", "scheduler", "worker", "tools", "benchmarks", "tests"]
UNITS, SOURCES = (".cc", ".cu"), (".cc", ".cu", ".h", ".cuh", ".def", ".fbs")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)', re.M)
# Generated headers and their sources.
MADE_FROM = {"messages_generated.h": "common/protocol/messages.fbs"}
LIMIT = 15  # Percent.
# Kind of change, its files, and its own limit if it has one, which must not grow.
KINDS = [
    ("an optimizer's rule", ["common/job/optimizers/*.h"], LIMIT,
     ["optimizer_record.h", "optimizer_settings.h"]),
    ("an activation", ["common/job/activation.h"]),
    ("a loss", ["common/job/spec/loss_kind.h"]),
    ("a setting: train", ["common/job/spec/train_spec.h"]),
    ("a setting: cluster", ["common/job/spec/cluster_spec.h"]),
    ("a setting: checkpoint", ["common/job/spec/checkpoint_spec.h"]),
    ("a setting: parallel", ["common/job/spec/parallel_spec.h"]),
    ("a setting: model", ["common/job/spec/model_spec.h"]),
    ("a setting: layer", ["common/job/spec/layer_spec.h"]),
    # Each source of rows, a file's format or a topic, reads the description of the data, and so do its tests.
    ("a setting: data", ["common/job/spec/data_spec.h"], 16),
    ("the text of a setting", ["common/job/text/*"]),
    ("a message about rows", ["common/protocol/row_messages.h"]),
    ("a message of membership", ["common/protocol/membership_messages.h", "common/protocol/view.h"], 16),
    ("a command", ["common/protocol/command_messages.h"]),
    ("another message", ["common/protocol/board_messages.h", "common/protocol/status_messages.h"]),
    ("the schema of messages", ["common/protocol/messages.fbs"]),
    ("job.h", ["common/job/job.h"]),
    # Servers, workers and half of the tests use tables.
    ("a setting: table", ["common/job/spec/table_spec.h"], 22, []),
    # A field that no optimizer had before; every table contains the fields of all optimizers.
    ("a field of optimizers", ["common/job/optimizers/optimizer_settings.h",
                               "common/job/optimizers/optimizer_record.h"], 28, []),
    # Each message contains its kind.
    ("the list of messages", ["common/protocol/message_kind.h"], 25, []),
    # One more section of a job, beside the seven; settings inside a section are counted above.
    ("a section of a job", ["common/job/job_spec.h"], 35, []),
]


class Tree:
    """The sources below a root and their includes."""

    def __init__(self, root):
        self.root = root
        self.text = {str(file.relative_to(root)): file for folder in FOLDERS
                     for file in (root / folder).rglob("*") if file.suffix in SOURCES}
        self.included = {path: list(self._includes(path)) for path in self.text}
        self.units = sorted(path for path in self.text if path.endswith(UNITS))
        self.seen_by = {}
        for unit in self.units:
            for path in self._reach(unit):
                self.seen_by.setdefault(path, set()).add(unit)

    def _includes(self, path):
        beside = path.rpartition("/")[0]
        for name in INCLUDE.findall(self.text[path].read_text(errors="replace")):
            name = MADE_FROM.get(name, name)
            found = next((p for p in (name, f"{beside}/{name}") if p in self.text), None)
            if found:
                yield found

    def _reach(self, unit):
        seen, left = set(), [unit]
        while left:
            path = left.pop()
            if path in seen:
                continue
            seen.add(path)
            left += self.included[path]
        return seen

    def cost(self, path):
        """How many units are compiled again when this file has changed."""
        return len(self.seen_by.get(path, ()))

    def matching(self, patterns, but):
        paths = [str(file.relative_to(self.root)) for pattern in patterns
                 for file in self.root.glob(pattern)]
        return [p for p in paths if p in self.text and p.rpartition("/")[2] not in but]


def report(tree, kinds):
    """Returns the lines of a table, and the problems."""
    lines = [f"{'what changes':26}{'units':>6}{'share':>8}{'limit':>7}  its dearest file"]
    problems = []
    for name, patterns, *rest in kinds:
        limit, but = (rest + [LIMIT, []][len(rest):])
        paths = tree.matching(patterns, but)
        if not paths:
            problems.append(f"{name}: there is no {', '.join(patterns)}")
            continue
        dearest = max(paths, key=tree.cost)
        share = 100 * tree.cost(dearest) / len(tree.units)
        lines.append(f"{name:26}{tree.cost(dearest):6}{share:7.1f}%{limit:6}%  {dearest}")
        if share > limit:
            problems.append(f"{name}: rebuilds {share:.1f} % of {len(tree.units)} units, at most {limit} %; "
                            f"see scripts/dev/rebuilds.py --to {dearest}")
    return lines + [f"of {len(tree.units)} units"], problems


def bringers(tree, header):
    """Yields the files that include a header, by the number of units that include each."""
    yield f"{header}: {tree.cost(header)} units"
    users = [path for path in tree.text if header in list(tree.included[path])]
    for path in sorted(users, key=tree.cost, reverse=True):
        if path not in tree.units:
            yield f"  {tree.cost(path):5}  {path}"
    yield f"  {sum(path in tree.units for path in users):5}  units by themselves"


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name in FOLDERS:
            (root / name).mkdir()
        (root / "common" / "dear.h").write_text("#pragma once\n")
        (root / "common" / "hub.h").write_text('#pragma once\n#include "common/dear.h"\n')
        (root / "common" / "cheap.h").write_text("#pragma once\n")
        for n in range(10):
            header = "hub" if n < 2 else "other"
            (root / "common" / f"unit_{n}.cc").write_text(f'#include "common/{header}.h"\n')
        (root / "common" / "unit_9.cc").write_text('#include "cheap.h"\n')
        tree = Tree(root)
        _, fine = report(tree, [("cheap", ["common/cheap.h"]), ("dear", ["common/dear.h"], 20, [])])
        _, above = report(tree, [("dear", ["common/dear.h"]), ("gone", ["common/gone.h"])])
    noticed = not fine and len(above) == 2 and "20.0 %" in above[0] and "no common/gone.h" in above[1]
    print("rebuilds self-test: " + ("both are noticed" if noticed else f"FAILED: {fine} {above}"))
    return 0 if noticed else 1


def main():
    if "--self-test" in sys.argv:
        return self_test()
    if "--to" in sys.argv:
        tree = Tree(ROOT)
        for header in sys.argv[sys.argv.index("--to") + 1:]:
            print("\n".join(bringers(tree, header)))
        return 0
    lines, problems = report(Tree(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT), KINDS)
    print("\n".join(lines + problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
