#!/usr/bin/env python3
"""Draws what hdps-bench measured: each figure as a bar beside its yardstick, as SVG.

usage: scripts/dev/plot_bench.py JSON... --out=FOLDER [--case=SUBSTRING]

JSON is what `hdps-bench NAME --json=FILE` writes. FOLDER gets one NAME.svg for each benchmark in the
files. Nothing but Python's own library is needed.
"""
import argparse
import html
import json
import math
import pathlib
import sys

WIDTH, LABELS, VALUES = 1000, 330, 250  # Pixels: of all, of the names, of the numbers at the right.
BAR, GAP, GROUP_GAP, TOP = 15, 3, 14, 74
SCALES_APART = 12  # Cases whose longest bars differ by more get scales of their own.
FIGURE, YARDSTICK, INK, FAINT, RULE = "#2f6f9f", "#c9d3da", "#1d2730", "#66727c", "#e3e8ec"
FONT = "font-family='DejaVu Sans, Helvetica, Arial, sans-serif'"


def shown(value):
    """1234567 as 1.23 M, four digits at most."""
    for limit, factor, unit in ((1e9, 1e9, " G"), (1e6, 1e6, " M"), (1e4, 1e3, " k")):
        if abs(value) >= limit:
            return f"{value / factor:.3g}{unit}"
    return f"{value:.4g}"


def text(x, y, words, size=12, fill=INK, anchor="start", weight="normal"):
    return (f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' fill='{fill}' text-anchor='{anchor}' "
            f"font-weight='{weight}' {FONT}>{html.escape(words)}</text>")


def bar(x, y, width, fill):
    return f"<rect x='{x:.1f}' y='{y:.1f}' width='{max(width, 1):.1f}' height='{BAR}' fill='{fill}' rx='2'/>"


def quartiles(samples):
    ordered = sorted(samples)

    def at(share):
        place = share * (len(ordered) - 1)
        below = math.floor(place)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] * (1 - place + below) + ordered[above] * (place - below)
    return at(0.25), at(0.75)


def whisker(x0, scale, y, samples):
    low, high = quartiles(samples)
    if high - low <= 0:
        return ""
    left, right, middle = x0 + scale * low, x0 + scale * high, y + BAR / 2
    return (f"<path d='M{left:.1f} {middle:.1f}H{right:.1f}M{left:.1f} {middle - 4:.1f}v8M{right:.1f} "
            f"{middle - 4:.1f}v8' stroke='{INK}' stroke-width='1.2' fill='none'/>")


def cases(results, wanted):
    """The figures with a yardstick, those of one unit in one panel, a case's figures together."""
    panels = {}
    for result in results:
        if "yardstick" not in result or wanted not in result["case"]:
            continue
        panels.setdefault(result["unit"], []).append(result)
    return panels


def bar_scale(results, width):
    """Pixels a unit for these results: the longest bar fills the width."""
    largest = max(max(r["value"], r["yardstick_value"]) for r in results)
    return width / largest if largest > 0 else 0


def draw_panel(unit, results, y):
    """All figures of one unit: lines of SVG and where they end. One scale for all of them, unless
    the cases differ too much to be seen on one: then one scale a case."""
    lines, note = [], ""
    width = WIDTH - LABELS - VALUES
    by_case = {}
    for result in results:
        by_case.setdefault(result["case"], []).append(result)
    scales = {case: bar_scale(of_case, width) for case, of_case in by_case.items()}
    if max(scales.values()) < SCALES_APART * min(scales.values()):
        scales = dict.fromkeys(scales, min(scales.values()))
    else:
        note = ", each case on its own scale"
    lines.append(text(LABELS, y, unit + note, 12, FAINT))
    y += 10
    place = LABELS + width + 12
    for case, of_case in by_case.items():
        scale, figure = scales[case], None
        y += GROUP_GAP
        lines.append(f"<line x1='16' x2='{WIDTH - 16}' y1='{y - 7}' y2='{y - 7}' stroke='{RULE}'/>")
        lines.append(text(16, y + BAR - 3, case, 12, INK, weight="bold"))
        y += BAR + GAP
        for result in of_case:
            if result["figure"] != figure:  # Else another yardstick of the same figure.
                figure = result["figure"]
                lines.append(text(LABELS - 8, y + BAR - 3, figure, 12, INK, "end"))
                lines.append(bar(LABELS, y, scale * result["value"], FIGURE))
                lines.append(whisker(LABELS, scale, y, result.get("samples", [])))
                lines.append(text(place, y + BAR - 3, f"{shown(result['value'])} {unit}", 12))
                y += BAR + GAP
            lines.append(text(LABELS - 8, y + BAR - 3, result["yardstick"], 11, FAINT, "end"))
            lines.append(bar(LABELS, y, scale * result["yardstick_value"], YARDSTICK))
            lines.append(text(place, y + BAR - 3, f"{shown(result['yardstick_value'])} {unit}", 11,
                              FAINT))
            lines.append(text(WIDTH - 16, y + BAR - 3, f"{result['ratio']:.3g}", 13, FIGURE, "end",
                              "bold"))
            y += BAR + 2 * GAP
    return lines, y


def draw(name, run, results, wanted):
    """The picture of one benchmark; None when it has no figure beside a yardstick."""
    panels = cases(results, wanted)
    if not panels:
        return None
    machine = run["machine"]
    about = (f"{machine['cpu']}, {run['setting']['threads']} threads, {machine['vector_width']}; commit "
             f"{run['commit']}, {run['time'][:10]}; median of {run['setting']['repeats']}, "
             "whiskers: quartiles")
    lines = [text(16, 30, f"hdps-bench {name}", 18, INK, weight="bold"), text(16, 50, about, 11, FAINT),
             text(WIDTH - 16, 50, "ratio", 12, FIGURE, "end", "bold")]
    y = TOP
    for unit, of_unit in panels.items():
        made, y = draw_panel(unit, of_unit, y)
        lines += made
        y += 24
    head = (f"<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{y:.0f}' "
            f"viewBox='0 0 {WIDTH} {y:.0f}'>")
    return "\n".join([head, f"<rect width='{WIDTH}' height='{y:.0f}' fill='white'/>",
                      *[line for line in lines if line], "</svg>"]) + "\n"


def load(path):
    try:
        run = json.loads(pathlib.Path(path).read_text())
        run["machine"]["cpu"], run["results"], run["setting"]["threads"]
        return run
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"plot_bench.py: error: {path} is not what hdps-bench --json=FILE writes: {error}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("json", nargs="+", help="what hdps-bench NAME --json=FILE wrote")
    parser.add_argument("--out", required=True, help="folder for NAME.svg")
    parser.add_argument("--case", default="", help="only the cases with this in their name")
    arguments = parser.parse_args()
    folder = pathlib.Path(arguments.out)
    folder.mkdir(parents=True, exist_ok=True)
    for path in arguments.json:
        run = load(path)
        for name in dict.fromkeys(result["bench"] for result in run["results"]):
            picture = draw(name, run, [r for r in run["results"] if r["bench"] == name], arguments.case)
            if picture is None:
                print(f"{name}: no figure beside a yardstick")
                continue
            (folder / f"{name}.svg").write_text(picture)
            print(f"{name}: {folder / name}.svg")


if __name__ == "__main__":
    main()
