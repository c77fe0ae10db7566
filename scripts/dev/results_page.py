#!/usr/bin/env python3
"""Writes the page of each benchmark from what hdps-bench measured: docs/records/benchmarks/NAME.md.

usage: scripts/dev/results_page.py JSON... [--out=docs/records/benchmarks] [--bench=build/bin/hdps-bench]
       scripts/dev/results_page.py --gpu=gpu_check.json [--results=docs/records/results.md]

JSON is what `hdps-bench NAME --json=FILE` writes. A page names the question, the machine, the commit and
the command, holds every figure (median and spread, yardstick of the same run, ratio), and shows the
picture of scripts/dev/plot_bench.py. Nothing in it is written by hand. --gpu puts the rows of what
scripts/dev/gpu_check.sh wrote into the GPU section of docs/records/results.md, in place of those before.
"""
import argparse
import json
import pathlib
import subprocess
import sys

import gpu_goals

LOAD_WORTH_SAYING = 0.1  # Cores that others kept busy.


def shown(value):
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def row(result):
    unit = f" {result['unit']}" if result["unit"] else ""
    figure = f"{shown(result['value'])}{unit} ({100 * result['spread']:.0f} %)"
    yardstick, ratio = "", ""
    if "yardstick" in result:
        yardstick = f"{result['yardstick']}, {shown(result['yardstick_value'])}"
        ratio = f"{result['ratio']:.2f}"
    others = result["foreign_cores"]
    busy = f"{others:.1f}" if others > LOAD_WORTH_SAYING else ""
    return f"| `{result['case']}` {result['figure']} | {figure} | {yardstick} | {ratio} | {busy} |"


def page(name, question, file, results):
    machine, setting = file["machine"], file["setting"]
    quick = " --quick" if setting["quick"] else ""
    command = f"build/bin/hdps-bench {name} --repeats={setting['repeats']}{quick}"
    return f"""# Benchmark: {name}

{question}

- Machine: {machine['cpu']}, {machine['cores']} cores, {machine['memory_bytes'] / 2**30:.0f} GiB, {machine['vector_width']}
- Commit {file['commit']}, {file['time'][:10]}, {setting['threads']} threads, {setting['repeats']} repeats
- Again: `{command}`

A figure is the median of the repeats, with the distance of the quartiles over it in brackets. A ratio
is the median of the ratios of figure and yardstick, which were measured in turns. `others` are the cores
that other programs kept busy meanwhile; where it is not empty, trust the ratio only.

| case and figure | figure | yardstick of the same run | ratio | others |
|---|--:|--:|--:|--:|
{chr(10).join(row(result) for result in results)}

![{name}: figures beside their yardsticks]({name}.svg)
"""


GPU_BEGIN, GPU_END = "<!-- gpu: begin -->", "<!-- gpu: end -->"


def gpu_rows(report):
    """The section: goals, each step that is not ok, and every figure beside its yardstick."""
    lines = [f"Measured on {report['gpu']}.", "", "| goal | figure | must, aim | of what it must be | |",
             "|---|--:|--:|--:|---|"]
    for goal in report["goals"]:
        figure = gpu_goals.shown(goal["figure"]) + (f" {goal['unit']}" if goal["figure"] is not None else "")
        aims = ", ".join(gpu_goals.shown(goal[word]) for word in ("must", "aim") if goal[word])
        verdict = f"**{goal['verdict']}**" if goal["verdict"] == "MISSED" else goal["verdict"]
        lines.append(f"| {goal['goal']} | {figure.strip()} | {aims} | {gpu_goals.shown(goal['ratio'])} | {verdict} |")
    not_ok = [f"- {name}: {step['status']}" for name, step in report["steps"].items() if step["status"] != "ok"]
    if not_ok:
        lines += ["", "Not well, or not run:", "", *not_ok]
    figures = [row(result) for result in gpu_goals.figures(report)]
    if figures:
        lines += ["", "| case and figure | figure | yardstick of the same run | ratio | others |",
                  "|---|--:|--:|--:|--:|", *figures]
    return "\n".join(lines)


def put_gpu_rows(path, page_path):
    page_file = pathlib.Path(page_path)
    try:
        rows = gpu_rows(json.loads(pathlib.Path(path).read_text()))
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"results_page.py: error: {path} is not what gpu_check.sh writes: {error}")
    text = page_file.read_text()
    if text.count(GPU_BEGIN) != 1 or text.count(GPU_END) != 1:
        sys.exit(f"results_page.py: error: {page_path} has not one line '{GPU_BEGIN}' and one '{GPU_END}'")
    page_file.write_text(text.split(GPU_BEGIN)[0] + f"{GPU_BEGIN}\n{rows}\n{GPU_END}" + text.split(GPU_END)[1])
    print(page_file)


def questions(bench):
    lines = subprocess.run([bench, "--list"], check=True, capture_output=True, text=True).stdout
    pairs = (line.strip().split(None, 1) for line in lines.splitlines() if line.strip())
    return dict(pair for pair in pairs if len(pair) == 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("json", nargs="*", help="what hdps-bench NAME --json=FILE wrote")
    parser.add_argument("--out", default="docs/records/benchmarks", help="the folder for the pages")
    parser.add_argument("--bench", default="build/bin/hdps-bench", help="the program that measured")
    parser.add_argument("--gpu", default="", help="what gpu_check.sh wrote")
    parser.add_argument("--results", default="docs/records/results.md", help="the page with the GPU section")
    arguments = parser.parse_args()
    if arguments.gpu:
        return put_gpu_rows(arguments.gpu, arguments.results)
    if not arguments.json:
        parser.error("give files of hdps-bench --json, or --gpu=FILE")
    out = pathlib.Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    asked = questions(arguments.bench)
    for path in arguments.json:
        try:
            file = json.loads(pathlib.Path(path).read_text())
            names = dict.fromkeys(result["bench"] for result in file["results"])
            for name in names:
                results = [result for result in file["results"] if result["bench"] == name]
                question = asked.get(name, "")
                question = question[:1].upper() + question[1:] + ("" if question.endswith("?") else ".")
                (out / f"{name}.md").write_text(page(name, question, file, results))
                print(out / f"{name}.md")
        except (OSError, ValueError, KeyError, TypeError) as error:
            sys.exit(f"results_page.py: error: {path} is not what hdps-bench --json=FILE writes: {error}")


if __name__ == "__main__":
    main()
