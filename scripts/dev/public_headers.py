#!/usr/bin/env python3
"""Checks the list of installed headers against their #include lines.

usage: scripts/dev/public_headers.py [ROOT]         prints what is wrong with the list, exits 1 if anything is
       scripts/dev/public_headers.py --write        writes the second part of the list again
       scripts/dev/public_headers.py --self-test    plants one mistake of each kind and sees it noticed
"""
import pathlib
import re
import sys
import tempfile

LIST = "scripts/dev/public_headers.txt"
SECOND = "# What these include. No program may count on it.\n"
ROOT = pathlib.Path(__file__).resolve().parents[2]


def parts(root):
    """Returns the two parts of the list: headers for programs, and headers that these include."""
    first, _, second = (root / LIST).read_text().partition(SECOND)
    return [[line for line in part.splitlines() if line and not line.startswith("#")] for part in (first, second)]


def reached(root, headers):
    """The headers and all files of the project that they include."""
    found, left = set(), list(headers)
    while left:
        header = left.pop()
        if header in found:
            continue
        found.add(header)
        left += [name for name in re.findall(r'^#include "([^"]+)"', (root / header).read_text(), re.M)
                 if (root / name).exists()]
    return found


def problems(root):
    promised, others = parts(root)
    missing = [header for header in promised + others if not (root / header).exists()]
    if missing:
        yield from (f"{header}: there is no such file" for header in missing)
        return
    wanted = reached(root, promised)
    for header in sorted(wanted - set(promised) - set(others)):
        yield f"{header}: a public header includes it: make it needless there, or list it (--write)"
    for header in others:
        if header not in wanted:
            yield f"{header}: no public header includes it: take it from the list (--write)"
        if header in promised or others.count(header) > 1:
            yield f"{header}: it is in the list twice"


def write(root):
    first = (root / LIST).read_text().partition(SECOND)[0]
    promised = parts(root)[0]
    (root / LIST).write_text(first + SECOND + "".join(
        f"{header}\n" for header in sorted(reached(root, promised) - set(promised))))


def self_test():
    """Plants a header that is missing in the list, superfluous, listed twice, or nonexistent."""
    texts = {"a/one.h": '#include "a/two.h"\n', "a/two.h": "#include <vector>\n", "a/three.h": ""}
    planted = {"a/two.h: a public": "", "a/three.h: no public": "a/two.h\na/three.h\n",
               "a/two.h: it is": "a/two.h\na/two.h\n", "a/none.h: there is": "a/none.h\n"}
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in {**texts, LIST: ""}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        for wanted, second in planted.items():
            (root / LIST).write_text("# First.\na/one.h\n" + SECOND + second)
            missed += [] if any(problem.startswith(wanted) for problem in problems(root)) else [wanted]
        write_list = root / LIST
        write_list.write_text("# First.\na/one.h\n" + SECOND)
        write(root)
        missed += [f"wrongly: {problem}" for problem in problems(root)]
    print(f"public_headers self-test: {len(planted)} planted mistakes; missed: {missed or 'none'}")
    return 1 if missed else 0


def main():
    if "--self-test" in sys.argv:
        return self_test()
    if "--write" in sys.argv:
        write(ROOT)
        return 0
    found = list(problems(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT))
    print("\n".join(found) or "public_headers: the list is what it says")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
