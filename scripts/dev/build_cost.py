#!/usr/bin/env python3
"""Measures the processor time of a build from nothing, in total and of its most expensive objects.

usage: scripts/dev/build_cost.py [--each=N] [--define=NAME=VALUE ...] [TARGET...]

Configures the preset release in a folder of its own, builds without a compiler cache and prints the
seconds of processor time, user and system, of the compiler and the linker. TARGET is a target of ninja;
none: everything; 'quickstart' is what scripts/quickstart.sh builds without a GPU. Other programs on the
machine also increase these seconds: compare two builds in turns.
--each=N compiles only every N-th object, in the order of their names, and links nothing. It compares two
commits in an N-th of the time.
"""
import argparse
import fcntl
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ["hdps", "hdps-scheduler", "hdps-server", "hdps-worker"]
RECORD = "HDPS_BUILD_COST"  # Names the file that a compiler's seconds are written to.


def run_one(command):
    """Acts as the launcher of a compiler: runs it and records its seconds and its output file."""
    status = subprocess.run(command, check=False).returncode
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    product = command[command.index("-o") + 1] if "-o" in command else command[-1]
    with open(os.environ[RECORD], "a", encoding="utf-8") as record:
        fcntl.flock(record, fcntl.LOCK_EX)
        record.write(f"{used.ru_utime + used.ru_stime:.2f} {product}\n")
    return status


def read_record(path):
    rows = [line.split(" ", 1) for line in path.read_text().splitlines()]
    return sorted(((float(seconds), product) for seconds, product in rows), reverse=True)


def kind_of(product):
    product = re.sub(r"CMakeFiles/[^/]+\.dir/", "", product)
    if product.endswith(".cu.o"):
        return "device code"
    if product.endswith((".gch", ".pch")):
        return "precompiled headers"
    if not product.endswith(".o"):
        return "links"
    parts = product.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def report(rows):
    kinds = {}
    for seconds, product in rows:
        count, total = kinds.get(kind_of(product), (0, 0.0))
        kinds[kind_of(product)] = (count + 1, total + seconds)
    print(f"{'seconds':>8} {'steps':>6}  what")
    for kind, (count, total) in sorted(kinds.items(), key=lambda k: -k[1][1]):
        print(f"{total:8.1f} {count:6}  {kind}")
    print("the ten costliest:")
    for seconds, product in rows[:10]:
        print(f"{seconds:8.1f}         {re.sub(r'CMakeFiles/[^/]+.dir/', '', product)}")
    print(f"figure: {sum(seconds for seconds, _ in rows):.0f} s of processor time in {len(rows)} steps")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("--each", type=int, default=0)
    parser.add_argument("--define", action="append", default=[])
    parser.add_argument("targets", nargs="*")
    flags = parser.parse_args()
    targets, defines = flags.targets, flags.define
    if targets == ["quickstart"]:
        targets, defines = PROGRAMS, ["HDPS_CUDA=OFF", *defines]
    with tempfile.TemporaryDirectory(prefix="hdps_build_cost_") as folder:
        build, record = pathlib.Path(folder) / "build", pathlib.Path(folder) / "record"
        environment = {**os.environ, RECORD: str(record)}
        configured = subprocess.run(
            ["cmake", "--preset", "release", "-B", build, f"-DHDPS_CCACHE={pathlib.Path(__file__).resolve()};--run",
             f"-DCMAKE_CXX_LINKER_LAUNCHER={pathlib.Path(__file__).resolve()};--run",
             *(f"-D{define}" for define in defines)],
            cwd=ROOT, capture_output=True, text=True, check=False)
        if configured.returncode:
            sys.exit(f"build_cost.py: error: it cannot be configured:\n{configured.stderr[-2000:]}")
        ninja = ["ninja", "-C", str(build)]
        if flags.each:
            commands = subprocess.run([*ninja, "-t", "inputs", *(targets or ["all"])], capture_output=True, text=True,
                                      check=True).stdout
            objects = sorted(set(re.findall(r"^\S+\.(?:cc|cu)\.o$", commands, re.M)))
            targets = objects[::flags.each]
        done = subprocess.run([*ninja, *targets], env=environment, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            sys.exit(f"build_cost.py: error: it cannot be built:\n{done.stdout[-2000:]}")
        report(read_record(record))
    return 0


if __name__ == "__main__":
    sys.exit(run_one(sys.argv[2:]) if sys.argv[1:2] == ["--run"] else main())
