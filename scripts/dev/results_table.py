#!/usr/bin/env python3
"""Turns what hdps-bench measured into rows of a Markdown table.

usage: scripts/dev/results_table.py JSON... [--case=SUBSTRING] [--all]

JSON is what `hdps-bench NAME --json=FILE` writes. A row is case and figure, median and spread,
yardstick of the same run, ratio; --all also prints figures without a yardstick. Where other programs
kept more than a tenth of a core busy, the row says so.
"""
import argparse
import json
import pathlib
import sys

LOAD_WORTH_SAYING = 0.1


def shown(value):
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def row(result):
    unit = f" {result['unit']}" if result["unit"] else ""
    figure = f"{shown(result['value'])}{unit} ({100 * result['spread']:.0f} %)"
    yardstick, ratio = "", ""
    if "yardstick" in result:
        yardstick = f"{result['yardstick']}, {shown(result['yardstick_value'])}"
        ratio = f"{result['ratio']:.2f}"
    noise = ""
    if result["foreign_cores"] > LOAD_WORTH_SAYING:
        noise = f" (others used {result['foreign_cores']:.1f} cores)"
    what = f"`{result['bench']}` {result['case']}: {result['figure']}"
    return f"| {what} | {figure}{noise} | {yardstick} | {ratio} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("json", nargs="+", help="what hdps-bench NAME --json=FILE wrote")
    parser.add_argument("--case", default="", help="only the cases with this in their name")
    parser.add_argument("--all", action="store_true", help="also figures without a yardstick")
    arguments = parser.parse_args()
    print("| what | figure | yardstick of the same run | ratio |\n|---|--:|--:|--:|")
    for path in arguments.json:
        try:
            results = json.loads(pathlib.Path(path).read_text())["results"]
            rows = [row(result) for result in results
                    if arguments.case in result["case"] and (arguments.all or "yardstick" in result)]
        except (OSError, ValueError, KeyError, TypeError) as error:
            sys.exit(f"results_table.py: error: {path} is not what hdps-bench --json=FILE writes: {error}")
        print("\n".join(rows))


if __name__ == "__main__":
    main()
