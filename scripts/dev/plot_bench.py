#!/usr/bin/python3
"""Draws the results of hdps-bench: each figure as a bar beside its yardstick, as SVG.

usage: scripts/dev/plot_bench.py JSON... --out=FOLDER [--case=SUBSTRING]

JSON is a file of `hdps-bench NAME --json=FILE`. FOLDER gets one NAME.svg for each benchmark in the
files. Whiskers are the quartiles of the repeats. Needs python3-matplotlib
(scripts/install_deps.sh --plots).
"""
import argparse
import collections
import json
import pathlib
import statistics
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend has to be chosen first)

FIGURE, YARDSTICK, LIMIT, FAINT = "#2f6f9f", "#c9d3da", "#c0392b", "#66727c"
# The same input gives the same file, and text stays text.
plt.rcParams.update({"svg.hashsalt": "hdps", "svg.fonttype": "none", "font.size": 9,
                     "axes.spines.top": False, "axes.spines.right": False})


def shown(value):
    """1234567 as 1.23 M."""
    for limit, factor, unit in ((1e9, 1e9, " G"), (1e6, 1e6, " M"), (1e4, 1e3, " k")):
        if abs(value) >= limit:
            return f"{value / factor:.3g}{unit}"
    return f"{value:.4g}"


def quartile_error(samples):
    if len(samples) < 2:
        return [[0], [0]]
    low, middle, high = statistics.quantiles(samples, n=4, method="inclusive")
    return [[max(middle - low, 0)], [max(high - middle, 0)]]


def note(axes, x, y, words, **style):
    """Writes text a little to the right of x."""
    axes.annotate(words, (x, y), xytext=(4, 0), textcoords="offset points", va="center", **style)


def draw_group(axes, unit, results):
    """Draws the figures of one unit on one pair of axes, with the same scale."""
    labels, y = [], 0.0
    for result in results:
        error = quartile_error(result["samples"])
        axes.barh(y, result["value"], 0.4, color=FIGURE, xerr=error,
                  error_kw={"elinewidth": 0.8, "capsize": 2})
        words = shown(result["value"])
        if "yardstick" in result:
            axes.barh(y + 0.4, result["yardstick_value"], 0.4, color=YARDSTICK)
            note(axes, result["yardstick_value"], y + 0.4,
                 f"{shown(result['yardstick_value'])} {result['yardstick']}", color=FAINT, fontsize=7)
            words += f"  ({result['ratio']:.2f})"
        note(axes, result["value"] + error[1][0], y, words, fontsize=8, weight="bold")
        labels.append((y + 0.2, f"{result['case']}\n{result['figure']}"))
        y += 1.1
    axes.set_yticks([at for at, _ in labels], [words for _, words in labels], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel(unit or "count")
    axes.margins(x=0.35)


def worth_drawing(results):
    """Selects each figure once, with its first yardstick; without a yardstick only if no figure has one."""
    beside = {}
    for result in results:
        if "yardstick" in result:
            beside.setdefault((result["case"], result["figure"]), result)
    return list(beside.values()) or results


def draw(bench, results, about, path):
    results = worth_drawing(results)
    groups = collections.OrderedDict()
    for result in results:
        groups.setdefault(result["unit"], []).append(result)
    heights = [len(group) + 1 for group in groups.values()]
    figure, axes = plt.subplots(len(groups), 1, figsize=(10, 0.55 * sum(heights) + 1.2),
                                squeeze=False, layout="constrained",
                                gridspec_kw={"height_ratios": heights})
    for axis, (unit, group) in zip(axes[:, 0], groups.items()):
        draw_group(axis, unit, group)
    figure.suptitle(f"hdps-bench {bench}: figure (blue) beside its yardstick (grey), ratio in brackets\n{about}",
                    fontsize=10, ha="left", x=0.01)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def read(path):
    """(results, a line about the machine) of one file of hdps-bench."""
    try:
        file = json.loads(pathlib.Path(path).read_text())
        machine = file["machine"]
        about = (f"{machine['cpu']}, {machine['cores']} cores, {machine['vector_width']}; "
                 f"commit {file['commit']}, {file['time'][:10]}")
        return file["results"], about
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"plot_bench.py: error: {path} is not what hdps-bench --json=FILE writes: {error}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("json", nargs="+", help="what hdps-bench NAME --json=FILE wrote")
    parser.add_argument("--out", required=True, help="the folder for the pictures")
    parser.add_argument("--case", default="", help="only the cases with this in their name")
    arguments = parser.parse_args()
    out = pathlib.Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    for path in arguments.json:
        results, about = read(path)
        by_bench = collections.OrderedDict()
        for result in results:
            if arguments.case in result["case"]:
                by_bench.setdefault(result["bench"], []).append(result)
        for bench, chosen in by_bench.items():
            draw(bench, chosen, about, out / f"{bench}.svg")
            print(out / f"{bench}.svg")


if __name__ == "__main__":
    main()
