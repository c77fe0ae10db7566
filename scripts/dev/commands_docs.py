#!/usr/bin/env python3
"""Writes the tables of docs/commands.md from what the programs themselves say with --help.

usage: scripts/dev/commands_docs.py [--bin=build/bin] [--check]

Everything between the marks of that page is written anew. --check writes nothing, and exits 1 where the page
differs from what the programs say.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "commands.md"
BEGIN, END = "<!-- commands -->", "<!-- end of commands -->"
DAEMONS = ["hdps-scheduler", "hdps-server", "hdps-worker"]
COLUMNS, CELL_WORDS, SENTENCE_WORDS_MIN = 160, 40, 4
FLAG = re.compile(r"^--(\w+) \((.*)\) type: (\w+) default: (.*)$", re.S)
TYPES = {"string": "TEXT", "bool": "", "int32": "N", "int64": "N", "uint32": "N", "uint64": "N", "double": "NUMBER"}


def said(command):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"commands_docs.py: error: {' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


def flags_of(text):
    """(name, meaning, type, default) of each flag, in the order of the help."""
    entries = []
    for line in text.split("\nflags:\n", 1)[1].splitlines():
        if line.startswith("  --"):
            entries.append(line.strip())
        elif line.startswith("      "):
            entries[-1] += " " + line.strip()
    found = (FLAG.match(entry) for entry in entries)
    return [match.groups() for match in found if match]


def row(name, meaning, kind, default):
    word = TYPES.get(kind, kind)
    flag = f"--{name}={word}" if word else f"--{name}"
    shown = "" if default in ('""', "false") else f"`{default.strip(chr(34))}`"
    return f"| `{flag}` | {shown} | {meaning.replace('|', chr(92) + '|')} |"


def fits(line):
    return len(line) <= COLUMNS and all(len(cell.split()) <= CELL_WORDS for cell in re.split(r"(?<!\\)\|", line))


def table(flags):
    """A row a flag; a meaning that is too long for one stands below, and its first sentence in the row."""
    lines, notes = ["| flag | default | meaning |", "|---|---|---|"], []
    for name, meaning, kind, default in flags:
        line = row(name, meaning, kind, default)
        if not fits(line):
            notes += textwrap.wrap(f"- **`--{name}`** {meaning}", 120, subsequent_indent="  ",
                                   break_long_words=False, break_on_hyphens=False)
            short = re.split(r"(?<=[.:;]) (?![^(]*\))", meaning)[0].rstrip(".:;")
            line = row(name, short + " (more below)", kind, default)
            only_names = re.fullmatch(r"\w+(, \w+)*", short)  # Of the commands that a meaning is for.
            if not fits(line) or len(short.split()) < SENTENCE_WORDS_MIN or only_names:
                line = row(name, "see below", kind, default)
        lines.append(line)
    return "\n".join([*lines, *([""] + notes if notes else [])])


def section(title, text):
    head = text.split("\nflags:\n", 1)[0].strip().splitlines()
    at = next(i for i, line in enumerate(head) if line.startswith("usage:"))
    meaning = " ".join(head[:at]).split(": ", 1)[1]
    meaning = meaning[:1].upper() + meaning[1:] + ("" if meaning.endswith(".") else ".")
    usage = "\n".join(head[at:]).removeprefix("usage: ")
    flags = flags_of(text)
    return f"### {title}\n\n{meaning}\n\n```text\n{usage}\n```\n" + (f"\n{table(flags)}\n" if flags else "")


def made(bin_folder):
    commands = re.findall(r"^  (\w+) +\S", said([bin_folder / "hdps", "help"]).split("example:")[0], re.M)
    parts = [section(f"hdps {name}", said([bin_folder / "hdps", name, "--help"]))
             for name in commands if name != "help"]
    parts += [section(name, said([bin_folder / name, "--help"])) for name in DAEMONS]
    return f"{BEGIN}\n\n" + "\n".join(parts) + f"\n{END}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", default=os.environ.get("HDPS_BIN", ROOT / "build" / "bin"), type=pathlib.Path,
                        help="the folder of the programs")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where the page differs")
    arguments = parser.parse_args()
    page = PAGE.read_text()
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        sys.exit(f"commands_docs.py: error: {PAGE} has not one line '{BEGIN}' and one '{END}'")
    new = page.split(BEGIN)[0] + made(arguments.bin) + page.split(END)[1]
    if arguments.check:
        if new != page:
            sys.exit(f"commands_docs.py: error: {PAGE} differs from what the programs say; "
                     "run scripts/dev/commands_docs.py")
        return
    PAGE.write_text(new)
    print(PAGE)


if __name__ == "__main__":
    main()
