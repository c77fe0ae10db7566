#!/usr/bin/env python3
"""Trains the same cases with hdps and with PyTorch in turns, and prints both and their ratio: for a
first epoch from empty tables, and for a second one over the same data, which finds its rows there.

  benchmarks/peers/compare.py --bin=build/bin [--case=small] [--repeats=5] [--json=FILE]

Without torch it says so and ends with status 0: a peer that is not installed is no mistake.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import cases

HERE = os.path.dirname(os.path.abspath(__file__))
# What a run tells of itself, and the words for it.
PHASES = {"first_epoch": "from an empty table", "second_epoch": "rows there"}


def python_with_torch(asked):
    for python in [asked] if asked else [sys.executable, "/usr/bin/python3"]:
        found = subprocess.run([python, "-c", "import torch, numpy"], check=False,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if found.returncode == 0:
            return python
    return None


def run_pytorch(python, case, folder, threads):
    command = [python, os.path.join(HERE, "pytorch_wide_deep.py"), "--case=" + case.name,
               "--data=" + folder, "--threads=%d" % threads]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def epochs_of_metrics(path, case):
    """Speed of each of both epochs, and the AUC behind the first, from a run's metrics.jsonl: a line
    stands at the end of each epoch, and one at the end of each evaluation."""
    epoch_ends, begins, auc = [], [0.0], None
    with open(path, encoding="ascii") as text:
        for line in map(json.loads, text):
            if "eval_auc" in line:
                auc = line["eval_auc"] if auc is None else auc
                begins[-1] = line["time"]
            elif line["epochs_done"] > len(epoch_ends):
                epoch_ends.append(line["time"])
                begins.append(line["time"])
    first, second = (case.rows / (end - begin) for begin, end in zip(begins, epoch_ends))
    return {"first_epoch": first, "second_epoch": second, "auc": auc}


def run_hdps(flags, case, folder, servers):
    """One process when `servers` is 0, else that many servers and a worker as daemons."""
    job = cases.write_job(case, folder)
    out = tempfile.mkdtemp(dir=folder)
    if servers == 0:
        command = [os.path.join(flags.bin, "hdps"), "train"]
    else:
        command = [os.path.join(HERE, "../../scripts/local_cluster.sh"), "--servers=%d" % servers,
                   "--workers=1"]
    command += ["--job=" + job, "--out=" + out, "--threads=%d" % flags.threads]
    if flags.set:
        command.append("--set=" + flags.set)
    environment = dict(os.environ, HDPS_BIN=os.path.abspath(flags.bin))
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    run = epochs_of_metrics(os.path.join(out, "metrics.jsonl"), case)
    shutil.rmtree(out)
    return run


def compare(flags, python, case, folder):
    subprocess.run([python, os.path.join(HERE, "pytorch_wide_deep.py"), "--case=" + case.name,
                    "--data=" + folder, "--only_data"], check=True)
    systems = {
        "pytorch": lambda: run_pytorch(python, case, folder, flags.threads),
        "hdps, one process": lambda: run_hdps(flags, case, folder, 0),
        "hdps, 1 server + 1 worker": lambda: run_hdps(flags, case, folder, 1),
    }
    runs = {name: [] for name in systems}
    for _ in range(flags.repeats):  # In turns: noise hits all alike.
        for name, run in systems.items():
            runs[name].append(run())
    figures = []
    for phase, words in PHASES.items():
        peer = statistics.median(run[phase] for run in runs["pytorch"])
        for name in systems:
            speeds = [run[phase] for run in runs[name]]
            speed = statistics.median(speeds)
            with_auc = case.eval_rows and phase == "first_epoch"
            figures.append({"case": case.name, "system": name, "phase": words,
                            "repeats": flags.repeats, "examples_per_second": speed,
                            "spread": (max(speeds) - min(speeds)) / speed, "ratio": speed / peer,
                            "auc": runs[name][-1].get("auc") if with_auc else None})
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(HERE, "../../build/bin"))
    parser.add_argument("--case", default="", help="cases with this in their name; empty: all")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--python", default="", help="an interpreter that has torch and numpy")
    parser.add_argument("--scratch", default=tempfile.gettempdir())
    parser.add_argument("--set", default="", help="override fields of hdps's job")
    parser.add_argument("--json", default="", help="also write the figures into this file")
    flags = parser.parse_args()
    python = python_with_torch(flags.python)
    if python is None:
        print("compare.py: skipped: no python with torch and numpy here (Debian: python3-torch)")
        return
    figures = []
    scratch = tempfile.mkdtemp(dir=flags.scratch)
    try:
        for case in cases.CASES:
            if flags.case not in case.name:
                continue
            for figure in compare(flags, python, case, os.path.join(scratch, case.name)):
                figures.append(figure)
                auc = "" if figure["auc"] is None else "  AUC %.4f" % figure["auc"]
                print("%-12s %-20s %-26s %9.0f examples/s  spread %2.0f %%  ratio %.2f%s"
                      % (figure["case"], figure["phase"], figure["system"],
                         figure["examples_per_second"], 100 * figure["spread"], figure["ratio"],
                         auc), flush=True)
    finally:
        shutil.rmtree(scratch)
    if flags.json:
        with open(flags.json, "w", encoding="ascii") as text:
            json.dump(figures, text, indent=2)


if __name__ == "__main__":
    main()
