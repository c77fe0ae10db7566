#!/usr/bin/env python3
"""Checks that programs have the protections of scripts/dev/hardening.cmake.

usage: scripts/dev/hardened.py PROGRAM...    prints what is missing, exits 1 if anything is
       scripts/dev/hardened.py --self-test   compiles a program without each and sees it noticed
"""
import os
import re
import subprocess
import sys
import tempfile

# Function of the C library that a protected program with arrays on the stack uses.
GUARD = "__stack_chk_fail"
CHECKED = re.compile(r"\b__\w+_chk(@|$)")
# Safe folders: others let any user who can write there decide what the program loads.
SAFE_RUN_PATHS = re.compile(r"^(\$ORIGIN/\.\./lib|/usr/local/cuda[\w./-]*|)$")


def read_elf(program):
    done = subprocess.run(["readelf", "--wide", "--file-header", "--program-headers", "--dynamic", "--dyn-syms", program],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"hardened.py: error: {program}: {done.stderr.strip()}")
    return done.stdout


def problems(elf):
    """Yields the protections that a program lacks."""
    segments = {name: flags for name, flags in re.findall(
        r"^  (\w+) +0x\w+ 0x\w+ 0x\w+ 0x\w+ 0x\w+ ([R ][W ][E ]) ", elf, re.M)}
    loads = re.findall(r"^  LOAD +0x\w+ 0x\w+ 0x\w+ 0x\w+ 0x\w+ ([R ][W ][E ]) ", elf, re.M)
    if not re.search(r"Type: +DYN", elf) or not re.search(r"FLAGS_1.*\bPIE\b", elf):
        yield "lies at a fixed address (no PIE)"
    if "GNU_RELRO" not in segments:
        yield "what the loader fills in stays writable (no RELRO)"
    if not re.search(r"FLAGS_1.*\bNOW\b|\(BIND_NOW\)|\(FLAGS\).*BIND_NOW", elf):
        yield "functions are looked up late, in writable memory (no BIND_NOW)"
    if segments.get("GNU_STACK", "RWE") != "RW ":
        yield "the stack can be executed"
    if any("W" in flags and "E" in flags for flags in loads):
        yield "memory is writable and can be executed"
    if "(TEXTREL)" in elf:
        yield "the loader writes into code (TEXTREL)"
    if GUARD not in elf:
        yield "no guards on the stack (-fstack-protector-strong)"
    if not CHECKED.search(elf):
        yield "no copy is checked for its length (_FORTIFY_SOURCE)"
    for paths in re.findall(r"\(R(?:UN)?PATH\).*\[(.*)\]", elf):
        for path in paths.split(":"):
            if not SAFE_RUN_PATHS.match(path):
                yield f"loads libraries from {path}"


SOURCE = r"""#include <cstdio>
#include <cstring>
#include <cstdlib>
int main(int count, char** words) {
  char text[64];
  std::memcpy(text, words[0], static_cast<size_t>(atoi(words[count - 1])));
  return std::puts(text);
}
"""
GOOD = ["-O2", "-fPIE", "-pie", "-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2",
        "-Wl,-z,relro,-z,now,-z,noexecstack"]
PLANTED = {"fixed address": ["-fno-PIE", "-no-pie"], "RELRO": ["-Wl,-z,norelro"], "late": ["-Wl,-z,lazy"],
           "stack can be executed": ["-Wl,-z,execstack"], "guards": ["-fno-stack-protector"],
           "length": ["-U_FORTIFY_SOURCE"], "loads libraries": ["-Wl,-rpath,/tmp/anywhere"]}


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "x.cc"), os.path.join(folder, "x")
        with open(source, "w", encoding="ascii") as file:
            file.write(SOURCE)

        def found(extra):
            subprocess.run(["g++", *GOOD, *extra, source, "-o", program], check=True, stderr=subprocess.PIPE)
            return list(problems(read_elf(program)))

        clean = found([])
        missed = [word for word, flags in PLANTED.items() if not any(word in p for p in found(flags))]
    for word in missed:
        print(f"hardened self-test: not noticed: {word}")
    print(f"hardened self-test: {len(PLANTED) - len(missed)} of {len(PLANTED)} planted problems noticed"
          + "".join(f"; of a good program it says: {p}" for p in clean))
    return 1 if missed or clean else 0


def main():
    programs = sys.argv[1:]
    if programs == ["--self-test"]:
        return self_test()
    if not programs:
        print(__doc__, file=sys.stderr)
        return 2
    bad = 0
    for program in programs:
        for problem in problems(read_elf(program)):
            print(f"{program}: {problem}")
            bad += 1
    if not bad:
        print(f"hardened: {len(programs)} programs: PIE, RELRO and BIND_NOW, no stack that can be executed, "
              "guards on the stack, checked lengths")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
