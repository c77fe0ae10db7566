#!/usr/bin/env python3
"""Draws the text of a terminal as an SVG picture: terminal_picture.py [--columns=N] TITLE < TEXT > FILE.svg

The first line of TEXT is the command. The picture has its own dark ground, so it is legible on light and
on dark pages. Long lines are folded as a terminal folds them."""
import argparse
import sys
from xml.sax import saxutils

CELL_WIDTH, LINE_HEIGHT, FONT_SIZE, MARGIN, BAR = 7.83, 18, 13, 14, 30
GROUND, BAR_COLOUR, TEXT, PROMPT, TITLE = "#1b1f24", "#2d333b", "#e6edf3", "#7ee787", "#9da7b1"
# Words at the beginning of a line that a reader should see first.
COLOURS = {"FAULT": "#ff7b72", "warning": "#e3b341", "good": "#7ee787", "next:": "#e3b341", "note:": "#e3b341"}


def escape(text):
    """Escapes text for XML, with spaces that no renderer merges."""
    return saxutils.escape(text).replace(" ", "\u00a0")


def folded(line, columns):
    """Splits the line into pieces of at most `columns` columns, at spaces where possible."""
    while len(line) > columns:
        at = line.rfind(" ", columns // 2, columns + 1)
        at = columns if at < 0 else at
        yield line[:at]
        line = line[at:].lstrip(" ")
    yield line


def picture(lines, title, columns):
    rows = [(piece, i == 0, j == 0) for i, line in enumerate(lines)
            for j, piece in enumerate(folded(line.rstrip(), columns))]
    width = round(2 * MARGIN + columns * CELL_WIDTH)
    height = BAR + 2 * MARGIN + LINE_HEIGHT * len(rows)
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           f'viewBox="0 0 {width} {height}" role="img" aria-label="{saxutils.escape(title)}">')
    yield f'<rect width="{width}" height="{height}" rx="8" fill="{GROUND}" stroke="#57606a"/>'
    yield f'<path d="M0 {BAR}V8a8 8 0 0 1 8-8h{width - 16}a8 8 0 0 1 8 8v{BAR - 8}z" fill="{BAR_COLOUR}"/>'
    yield (f'<g font-family="ui-monospace, \'DejaVu Sans Mono\', Menlo, Consolas, monospace" '
           f'font-size="{FONT_SIZE}">')
    yield (f'<text x="{width / 2:.0f}" y="{BAR - 10}" fill="{TITLE}" text-anchor="middle">'
           f'{escape(title)}</text>')
    for number, (text, is_command, is_first) in enumerate(rows):
        y = BAR + MARGIN + LINE_HEIGHT * number + FONT_SIZE
        word = text.split(" ")[0] if is_first else ""
        colour = PROMPT if is_command else TEXT
        spans = escape(text)
        if word in COLOURS and not is_command:
            spans = f'<tspan fill="{COLOURS[word]}">{escape(word)}</tspan>' + escape(text[len(word):])
        # An explicit length aligns columns with any font.
        length = f' textLength="{len(text) * CELL_WIDTH:.1f}" lengthAdjust="spacingAndGlyphs"' if text else ""
        yield f'<text x="{MARGIN}" y="{y}" fill="{colour}"{length}>{spans}</text>'
    yield "</g>\n</svg>"


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("title")
    arguments.add_argument("--columns", type=int, default=118)
    given = arguments.parse_args()
    for part in picture(sys.stdin.read().rstrip("\n").split("\n"), given.title, given.columns):
        print(part)


if __name__ == "__main__":
    main()
