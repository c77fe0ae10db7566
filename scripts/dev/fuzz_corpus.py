#!/usr/bin/env python3
"""Packs the inputs of a fuzz target, which are files of a folder, into one file of lines, and back.

usage: scripts/dev/fuzz_corpus.py unpack FILE FOLDER   writes each line of FILE as a file of FOLDER
       scripts/dev/fuzz_corpus.py pack FILE FOLDER...  writes FILE anew from all files of the folders
       scripts/dev/fuzz_corpus.py add FILE INPUT...    adds files to FILE

A line is an input. Printable ASCII characters except the backslash stand for themselves; every other
byte is \\xNN. Lines are sorted and unique, so a diff shows the changed inputs.
"""
import hashlib
import pathlib
import re
import sys

PLAIN = re.compile(rb"[ -\[\]-~]")
LINE = re.compile(rb"(?:[ -\[\]-~]|\\x[0-9a-f]{2})*")


def line_of(data):
    return b"".join(byte if PLAIN.match(byte) else b"\\x%02x" % byte[0]
                    for byte in (data[i:i + 1] for i in range(len(data))))


def input_of(line):
    if not LINE.fullmatch(line):
        raise ValueError(f"no line of a corpus: {line[:60]!r}: expected ASCII, and \\xNN for other bytes")
    return re.sub(rb"\\x(..)", lambda found: bytes([int(found[1], 16)]), line)


def read(path):
    return [input_of(line) for line in path.read_bytes().split(b"\n")[:-1]] if path.exists() else []


def write(path, inputs):
    path.write_bytes(b"".join(sorted(line_of(data) + b"\n" for data in set(inputs))))


def main():
    words = [pathlib.Path(word) for word in sys.argv[1:]]
    if len(words) < 3 or sys.argv[1] not in ("unpack", "pack", "add"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    file, others = words[1], words[2:]
    if sys.argv[1] == "unpack":
        others[0].mkdir(parents=True, exist_ok=True)
        for data in read(file):
            (others[0] / hashlib.sha1(data).hexdigest()).write_bytes(data)
    elif sys.argv[1] == "pack":
        write(file, [one.read_bytes() for folder in others for one in folder.iterdir()])
    else:
        write(file, read(file) + [one.read_bytes() for one in others])
    return 0


if __name__ == "__main__":
    sys.exit(main())
