#!/usr/bin/env python3
"""Prints comments drawn at random from the headers and sources, each with its place and the declaration
that it belongs to, so that a reader can judge whether they explain themselves. The same seed draws the
same comments from the same tree. A comment is a block of consecutive // lines, or one behind code.

usage: scripts/dev/comments.py --seed=N [--count=40]  prints so many comments
       scripts/dev/comments.py --count=0              prints how many comments each room has
       scripts/dev/comments.py --self-test            blocks and trailing comments are found, strings skipped
"""
import collections
import pathlib
import random
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ["common", "kernels", "embedding", "server", "scheduler", "worker", "tools", "python", "benchmarks", "tests"]
SOURCES, SHOWN_LINES = (".h", ".cuh", ".cc", ".cu"), 3
# Literals and numbers such as 1'000 come first, so that nothing inside them is taken for a comment.
TOKEN = re.compile(r'R"([^(\s]*)\((?:.|\n)*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|'
                   r'//[^\n]*|/\*(?:.|\n)*?\*/|\d[\w\'.]*|\w+')
MARK = re.compile(r"//\s*(-{3,}|NOLINT|clang-format|IWYU|namespace\b|Copyright|SPDX|Licensed)")
Comment = collections.namedtuple("Comment", "line text declaration")


def comment_lines(text):
    """Yields (line, column, comment, is_alone): the // comment of each line that has one."""
    for token in TOKEN.finditer(text):
        if token[0].startswith("//") and not MARK.match(token[0]):
            begin = text.rfind("\n", 0, token.start()) + 1
            yield (text.count("\n", 0, begin) + 1, token.start() - begin, token[0],
                   not text[begin:token.start()].strip())


def declaration_below(lines, line):
    """The code below a block that ends at `line` (from 1); nothing where the comment is the file's."""
    found = []
    for code in lines[line:line + SHOWN_LINES]:
        if not code.strip() or code.startswith("#"):
            break
        found.append(code)
        if code.split("//")[0].rstrip().endswith(("{", ";", "}")):
            break
    return found


def comments_of(text):
    lines, found, last = text.split("\n"), [], None
    for line, column, comment, is_alone in comment_lines(text):
        # A comment behind code goes on below it in its own column.
        if is_alone and last and last[0] == line - 1 and (last[2] or last[1] == column):
            found[-1][1].append(comment)
        else:
            found.append((line, [comment], is_alone))
        last = (line, column, found[-1][2])
    return [Comment(line, comment, declaration_below(lines, line + len(comment) - 1) if is_block
                    else [lines[line - 1].partition(comment[0])[0].rstrip()])
            for line, comment, is_block in found]


def comments_of_tree(root):
    files = [file for folder in FOLDERS for file in (root / folder).rglob("*") if file.suffix in SOURCES]
    return [(str(file.relative_to(root)), comment)
            for file in sorted(files) for comment in comments_of(file.read_text())]


def self_test():
    text = ('// Purpose.\n#pragma once\n\n// First line,\n// second line.\nint F(\n    int a);\n'
            'int x = 1\'000;  // Trailing,\n                // and more.\nauto s = "// no"; char c = \'"\';\n'
            'auto r = R"(\n// none)";\nint y;  // NOLINT(why)\n}  // namespace hdps\n')
    wanted = [Comment(1, ["// Purpose."], []),
              Comment(4, ["// First line,", "// second line."], ["int F(", "    int a);"]),
              Comment(8, ["// Trailing,", "// and more."], ["int x = 1'000;"])]
    found = comments_of(text)
    print("comments self-test: " + ("all are found" if found == wanted else f"FAILED: {found}"))
    return 0 if found == wanted else 1


def main():
    if "--self-test" in sys.argv:
        return self_test()
    options = dict(re.findall(r"--(seed|count)=(\d+)", " ".join(sys.argv)))
    count, comments = int(options.get("count", 40)), comments_of_tree(ROOT)
    if count == 0:
        rooms = collections.Counter("/".join(path.split("/")[:-1][:2]) for path, _ in comments)
        print("\n".join(f"{rooms[name]:6}  {name}" for name in sorted(rooms)) + f"\n{len(comments):6}  in all")
    elif "seed" not in options:
        sys.exit(__doc__)
    else:
        for path, comment in random.Random(int(options["seed"])).sample(comments, min(count, len(comments))):
            print("\n  ".join([f"{path}:{comment.line}", *comment.text, *comment.declaration]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
