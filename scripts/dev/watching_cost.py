#!/usr/bin/env python3
"""Measures what it costs a job to be watched: trained with and without, in turns.

usage: scripts/dev/watching_cost.py [--bin=build/bin] [--turns=7] [--case=census|small_mlp|ids_26] [--with="FLAGS"]

A job that is watched serves HTTP, is scraped once a second (/metrics), and its page is asked for once a second
(/api/v1/page?since=V), as a browser does. The other one runs with --http=none. Both run in each turn, and the order changes
from turn to turn. The figure is the speed of the watched job over that of the other: the median of the turns' ratios."""

import argparse
import http.cookiejar
import json
import pathlib
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
WATCH_LINE = re.compile(r"watch at (\S+?)/?\?token=(\S+)")
SMALL = {"type": "wide_deep", "embedding_dim": 16, "hidden": [64, 32]}
IDS = {"type": "graph",
       "tables": [{"name": "ids", "dim": 16, "optimizer": {"kind": "adagrad", "learning_rate": 0.05}}],
       "dense_optimizer": {"kind": "adagrad", "learning_rate": 0.02},
       "layers": [{"name": "embedding", "kind": "embedding", "table": "ids"},
                  {"name": "h1", "inputs": ["embedding"], "units": 256, "activation": "relu"},
                  {"name": "h2", "inputs": ["h1"], "units": 128, "activation": "relu"},
                  {"name": "h3", "inputs": ["h2"], "units": 64, "activation": "relu"},
                  {"name": "logit", "inputs": ["h3"], "units": 1}]}


class Watcher:
    """Reads what the job prints, and asks its pages once a second while it runs."""

    def __init__(self, job):
        self.answers, self.slowest, self.failures = 0, 0.0, []
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._watch, args=(job,))
        self.thread.start()

    def _watch(self, job):
        found = None
        for line in job.stderr:
            found = found or WATCH_LINE.search(line)
            if found and not hasattr(self, "asker"):
                self.asker = threading.Thread(target=self._ask, args=found.groups())
                self.asker.start()
        self.ended.set()
        if found:
            self.asker.join()
        else:
            self.failures.append("the job printed no line 'watch at'")

    def _ask(self, address, token):
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
        opener.addheaders = [("Authorization", "Bearer " + token)]
        version = 0
        while True:
            try:
                begin = time.monotonic()
                opener.open(address + "/metrics", timeout=10).read()
                self.slowest = max(self.slowest, time.monotonic() - begin)
                page = json.load(opener.open(f"{address}/api/v1/page?since={version}", timeout=10))
                version = page["version"]
                self.answers += 1
            except OSError as error:
                if self.ended.wait(1):  # A job that has ended answers no more.
                    return
                self.failures.append(str(error))
            if self.ended.wait(1):
                return


def train(tools, job, out, flags, watched):
    """Runs the job and returns its examples a second, and the watcher."""
    command = [str(tools / "hdps"), "train", f"--job={job}", f"--out={out}", *flags]
    command += ["--http=127.0.0.1:0"] if watched else ["--http=none"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        watcher = Watcher(process) if watched else None
        text = "" if watched else process.stderr.read()
        if watcher:
            watcher.thread.join()
        if process.wait() != 0:
            sys.exit(f"{shlex.join(command)} ended with {process.returncode}: {text[-2000:]}")
    return json.loads((out / "summary.json").read_text())["examples_per_second"], watcher


def job_of(case, tools, folder):
    """Writes the data and the job of a case; returns the job's path and its settings."""
    if case == "census":
        return ROOT / "examples/census/census.json", ["--set=train.epochs=6"]
    rows, numeric, model = (600_000, 13, SMALL) if case == "small_mlp" else (300_000, 0, IDS)
    subprocess.run([tools / "hdps", "generate", f"--out={folder}", f"--rows={rows}", f"--numeric={numeric}",
                    "--vocabulary=100000", "--eval_rows=1000"], check=True, stdout=subprocess.DEVNULL)
    job = {"name": case, "data": {"format": "criteo", "train": ["train.tsv"]}, "model": model,
           "train": {"epochs": 1, "batch_size": 1024}, "parallel": {"gradients_mean": True}}
    path = folder / "watched.json"
    path.write_text(json.dumps(job))
    return path, []


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n")[2])
    parser.add_argument("--bin", default=str(ROOT / "build/bin"))
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--case", action="append", choices=["census", "small_mlp", "ids_26"])
    parser.add_argument("--with", dest="more", default="", help="further flags of the job that is watched")
    options = parser.parse_args()
    tools = pathlib.Path(options.bin)
    for case in options.case or ["census", "small_mlp", "ids_26"]:
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            job, flags = job_of(case, tools, folder)
            ratios, answers, slowest = [], 0, 0.0
            for turn in range(options.turns):
                speeds = {}
                for watched in (turn % 2 == 0, turn % 2 == 1):
                    more = shlex.split(options.more) if watched else []
                    out = folder / f"out_{turn}_{watched}"
                    speeds[watched], watcher = train(tools, job, out, flags + more, watched)
                    if watcher is None:
                        continue
                    if watcher.failures or watcher.answers == 0:
                        sys.exit(f"{case}: {watcher.failures or 'nobody was answered'}")
                    answers, slowest = answers + watcher.answers, max(slowest, watcher.slowest)
                ratios.append(speeds[True] / speeds[False])
            ratios.sort()
            print(f"{case}: watched over not watched {statistics.median(ratios):.3f} "
                  f"(from {ratios[0]:.3f} to {ratios[-1]:.3f}, {options.turns} turns); {answers} scrapes, "
                  f"the slowest {slowest * 1e3:.1f} ms", flush=True)


if __name__ == "__main__":
    main()
