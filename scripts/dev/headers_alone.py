#!/usr/bin/env python3
"""Checks that each header compiles alone.

The build shows this for a header that some .cc file includes first; the others are compiled here.

usage: scripts/dev/headers_alone.py [BUILD_FOLDER]   prints the compiler's errors, exits 1 if there are any
       scripts/dev/headers_alone.py --self-test      a header that needs another one is noticed
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ["common", "kernels", "embedding", "server", "scheduler", "worker", "tools", "benchmarks", "tests"]


def shown_by_the_build(root):
    """The headers that a .cc file includes before anything else."""
    shown = set()
    for folder in FOLDERS:
        for file in (root / folder).rglob("*.cc"):
            first = re.search(r'^#include ["<]([^">]+)', file.read_text(), re.M)
            if first:
                shown.add(first[1])
    return shown


def errors_of(root, header, build):
    """Returns the compiler's errors for a file that includes only this header.

    A folder called include stands first on the path of its own headers, as it does where they are used:
    a stand-in for a library's header includes its own neighbours, not the library's.
    """
    own = next((str(root / above) for above in pathlib.PurePath(header).parents
                if above.name == "include"), "")
    done = subprocess.run(["g++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic",
                           '-DHDPS_SOURCE_DIR=""', *(["-I", own] if own else []), "-I", str(root), "-isystem",
                           str(build / "common"), "-x", "c++", "-"],
                          input=f'#include "{header}"\n', capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def check(root, build):
    shown = shown_by_the_build(root)
    headers = [str(file.relative_to(root)) for folder in FOLDERS
               for file in sorted((root / folder).rglob("*.h"))]
    rest = [header for header in headers if header not in shown]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        errors = [e for e in pool.map(lambda header: errors_of(root, header, build), rest) if e]
    return errors, f"headers: {len(headers)}, {len(rest)} of them compiled alone here"


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name in FOLDERS:
            (root / name).mkdir()
        (root / "common" / "leans.h").write_text("inline std::string Leans() { return {}; }\n")
        (root / "common" / "stands.h").write_text("inline int Stands() { return 0; }\n")
        (root / "common" / "user.cc").write_text('#include <string>\n#include "common/leans.h"\n')
        errors, _ = check(root, root)
        noticed = len(errors) == 1 and "leans.h" in errors[0]
    print("headers self-test: " + ("a header that leans on another is noticed" if noticed else "FAILED"))
    return 0 if noticed else 1


def main():
    if "--self-test" in sys.argv:
        return self_test()
    errors, said = check(ROOT, pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build")
    print("\n".join([*errors, said]))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
