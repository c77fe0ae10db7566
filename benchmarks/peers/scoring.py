#!/usr/bin/env python3
"""Scores the same rows with hdps and with PyTorch in turns: Wide&Deep over 13 numbers and 26 keys, dim 16, 256-128-64.

  benchmarks/peers/scoring.py --bin=build/bin [--rows=1000000] [--repeats=3] [--json=FILE]

hdps reads text, hashes keys and writes lines; rates are of the rows behind the first 4096, so that loading a
checkpoint does not count, and of a whole command beside. PyTorch scores arrays in memory in eval mode: plain, and
compiled in parts (pytorch_tuned.py). The evaluation inside a run of hdps is timed by the run's metrics. Without PyTorch
(benchmarks/peers/setup.sh) it prints a note and ends with status 0.
"""
import argparse
import dataclasses
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import cases
import compare
import machine

FIRST = 4096  # Rows of the short file.
CASE = cases.Case("scores", 13, 26, 16, (256, 128, 64), 4096, 64)
HERE = os.path.dirname(os.path.abspath(__file__))


def timed(command):
    """Runs a command; returns its seconds, its processor seconds and what it prints."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    seconds = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit("scoring.py: error: status %d of: %s\n%s" % (done.returncode, " ".join(command), done.stderr[-3000:]))
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, cpu, done.stdout


def score_with_pytorch(case, folder, threads):
    """Prints rows/s of both forms as a line of JSON; runs where PyTorch is."""
    import torch
    import pytorch_runs
    import pytorch_tuned

    torch.set_num_threads(threads)
    torch.manual_seed(cases.SEED)
    keys, numbers, _ = pytorch_runs.load(case, folder, "eval")
    batches = list(zip(keys.split(case.batch), numbers.split(case.batch)))
    rows, dense = pytorch_tuned.Rows(case), pytorch_tuned.Dense(case).eval()
    figures = {"version": torch.__version__}
    forms = {"pytorch plain": dense, "pytorch compiled": torch.compile(dense, dynamic=False)}
    with torch.inference_mode():
        for name, model in forms.items():
            def score(batch, model=model):
                return torch.sigmoid(model(*rows.of(batch[0]), batch[1]))
            for batch in batches[:3] + batches[-1:]:
                score(batch)
            began = time.perf_counter()
            for batch in batches:
                score(batch)
            figures[name] = len(keys) / (time.perf_counter() - began)
    print(json.dumps(figures))


def rows_of(flags, folder, out):
    """Returns the figures of one turn of hdps, in rows/s, and processor seconds for a million rows."""
    hdps, figures = os.path.join(flags.bin, "hdps"), {}
    for name in ("predict", "evaluate"):
        command = [hdps, name, "--checkpoint=" + out, "--which=newest", "--threads=%d" % flags.threads]
        if name == "predict":
            command.append("--out=" + os.path.join(folder, "scores"))
        first, first_cpu, _ = timed(command + ["--data=" + os.path.join(folder, "first.tsv")])
        whole, cpu, _ = timed(command + ["--data=" + os.path.join(folder, "eval.tsv")])
        figures["hdps " + name] = (flags.rows - FIRST) / (whole - first)
        figures["hdps %s, the whole command" % name] = flags.rows / whole
        figures["hdps %s, processor s a million rows" % name] = 1e6 * (cpu - first_cpu) / (flags.rows - FIRST)
    return figures


def evaluation_in_run(out, rows):
    """Returns rows/s of the evaluation behind the only epoch of a run."""
    began = 0.0
    with open(os.path.join(out, "metrics.jsonl"), encoding="ascii") as text:
        for line in map(json.loads, text):
            if "eval_logloss" in line or "eval_auc" in line:
                return rows / (line["time"] - began)
            began = line["time"]
    sys.exit("scoring.py: error: no evaluation in " + out)


def prepare(flags, case, folder):
    """Makes data and a run, and returns the run's folder."""
    subprocess.run([flags.python, __file__, "--make=" + folder, "--rows=%d" % flags.rows], check=True)
    first = os.path.join(folder, "first.tsv")
    with open(os.path.join(folder, "eval.tsv"), encoding="ascii") as text, open(first, "w", encoding="ascii") as to:
        to.writelines(line for _, line in zip(range(FIRST), text))
    job, out = cases.write_job(case, folder), os.path.join(folder, "run")
    timed([os.path.join(flags.bin, "hdps"), "train", "--job=" + job, "--out=" + out, "--set=train.epochs=1",
           "--threads=%d" % flags.threads])
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(compare.ROOT, "build/bin"))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--python", default=os.path.join(compare.ROOT, "build/peers_venv/bin/python"))
    parser.add_argument("--folder", default="", help="where data and the run stay; empty: they go")
    parser.add_argument("--json", default="", help="also write the figures into this file")
    parser.add_argument("--make", default="", help=argparse.SUPPRESS)
    parser.add_argument("--score", default="", help=argparse.SUPPRESS)
    flags = parser.parse_args()
    case = dataclasses.replace(CASE, eval_rows=flags.rows)
    if flags.make:
        return cases.make_data(case, flags.make)
    if flags.score:
        return score_with_pytorch(case, flags.score, flags.threads)
    if not compare.has_pytorch(flags.python):
        print("scoring.py: skipped: no PyTorch and numpy in %s; benchmarks/peers/setup.sh makes them "
              "(or --python=FILE)" % flags.python)
        return None
    with tempfile.TemporaryDirectory() as scratch:
        folder = flags.folder or scratch
        out = prepare(flags, case, folder)
        runs = []
        for _ in range(flags.repeats):  # In turns: noise hits all alike.
            ours = rows_of(flags, folder, out)
            peer = json.loads(timed([flags.python, __file__, "--score=" + folder, "--rows=%d" % flags.rows,
                                     "--threads=%d" % flags.threads])[2].splitlines()[-1])
            runs.append({**ours, **peer})
        inside = evaluation_in_run(out, flags.rows)
    about, version = machine.cpu(), runs[0].pop("version")
    print("%s, %d threads, %d rows, medians of %d in turns; PyTorch %s" % (
        about["cpu"], flags.threads, flags.rows, flags.repeats, version))
    figures = {name: statistics.median(run[name] for run in runs) for name in runs[0] if name != "version"}
    figures["evaluation inside the run"] = inside
    best = max(figures["pytorch plain"], figures["pytorch compiled"])
    for name, value in figures.items():
        if "processor" in name:
            print("%-50s %10.2f s" % (name, value))
        else:
            print("%-50s %10.0f rows/s, %.2f of the best PyTorch" % (name, value, value / best))
    if flags.json:
        with open(flags.json, "w", encoding="ascii") as text:
            json.dump({"about": about, "version": version, "figures": figures, "runs": runs}, text, indent=2)
    return None


if __name__ == "__main__":
    main()
