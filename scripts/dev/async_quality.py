#!/usr/bin/env python3
"""Shows what asynchronous training costs in quality and gives in speed, on workers of unlike speeds.

usage: scripts/dev/async_quality.py [--bin=build/bin] [--criteo=FILE] [--sets=planted,census,criteo] [--workers=1,2,4,8]
                                    [--cases=NAME,...] [--turns=3] [--results=FILE] [--page=FILE] [--draw]

Trains a planted log, the census data and, with --criteo, a sample of Criteo's in sync, ssp and async, and once more in async
with each of the means against old rows. Every run is a cluster of daemons on this machine. A worker computes its part of a
batch and then stands still, the last worker four times as long as the first, as machines of unlike speeds would; its frames
come late by chance. What is compared with sync, with the most workers, is trained --turns times. The figures go into
--results, the table into --page between its marks, and the picture beside the page. With --draw nothing is trained: page and
picture are made of the figures that are there; with --cases only these are trained, and the other figures stay."""

import argparse
import gzip
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/how_to/async_quality.md"
RESULTS = ROOT / "docs/how_to/async_quality.json"
BATCH = 512
# Time in which the first worker computes a whole batch; with N workers each has an Nth of one.
BATCH_MS = 16
SLOWEST = 4  # Times as long as the first.
LATE_MS = 4  # Frames of workers come late by 0 to this.
EVALUATIONS = 8
MODES = {"sync": {"mode": "sync"}, "ssp 1": {"mode": "ssp", "staleness_bound": 1},
         "ssp 4": {"mode": "ssp", "staleness_bound": 4}, "ssp 16": {"mode": "ssp", "staleness_bound": 16},
         "async": {"mode": "async"}}
FIXES = {"max_staleness 2": {"mode": "async", "max_staleness": 2},
         "delay_compensation 100": {"mode": "async", "delay_compensation": 100.0},
         "staleness_rate": {"mode": "async", "staleness_rate": True},
         "half the rate": {"mode": "async"}}
RATES = {"half the rate": 0.5}  # Times the job's learning rates, in this case.
COLOURS = {"sync": "#1b1b1b", "ssp 1": "#2f6f9f", "ssp 4": "#3a9d8f", "ssp 16": "#c98b1b", "async": "#c0392b"}
RUN_S_MAX = 120


def wide_deep(rate):
    rule = {"kind": "lazy_adam", "learning_rate": rate}
    return {"type": "wide_deep", "embedding_dim": 8, "hidden": [64, 32], "wide_optimizer": rule, "deep_optimizer": rule,
            "dense_optimizer": {"kind": "adam", "learning_rate": rate}}


def planted_job(folder, program):
    subprocess.run([program / "hdps", "generate", f"--out={folder}", "--model=wide_deep", "--rows=60000", "--eval_rows=10000",
                    "--numeric=4", "--categorical=6", "--vocabulary=40", "--seed=23"], check=True, stdout=subprocess.DEVNULL)
    return {"name": "planted", "seed": 5, "model": wide_deep(0.006), "train": {"epochs": 2},
            "data": {"format": "criteo", "train": [f"{folder}/train.tsv"], "eval": [f"{folder}/eval.tsv"]}}, 60000


def census_job(_, __):
    job = json.loads((ROOT / "examples/census/census.json").read_text())
    for name in ("train", "eval"):
        job["data"][name] = [str(ROOT / "examples/census" / file) for file in job["data"][name]]
    return job, 32561


def criteo_job(folder, sample):
    """The last tenth of the sample, which is in the order of time, is for evaluation."""
    with gzip.open(sample, "rt") as lines:
        rows = lines.readlines()
    cut = len(rows) * 9 // 10
    (folder / "train.tsv").write_text("".join(rows[:cut]))
    (folder / "eval.tsv").write_text("".join(rows[cut:]))
    return {"name": "criteo", "seed": 5, "model": wide_deep(0.001), "train": {"epochs": 1},
            "data": {"format": "criteo", "train": [f"{folder}/train.tsv"], "eval": [f"{folder}/eval.tsv"]}}, cut


def with_rate(job, factor):
    """The job with all its learning rates so many times as high."""
    model = {name: {**value, "learning_rate": value["learning_rate"] * factor} if name.endswith("_optimizer") else value
             for name, value in job["model"].items()}
    return {**job, "model": model}


def faults_of(worker, workers):
    """What makes a worker as slow as it is to be."""
    slowness = 1 + (SLOWEST - 1) * worker / max(workers - 1, 1)
    stands_ms = max(1, round(BATCH_MS / workers * slowness))
    return f"point=worker.step.computed:sleep={stands_ms}ms@1..,late=0..{LATE_MS}ms"


def train(program, job, out, workers):
    """Trains a job by a scheduler, a server and workers. Returns its summary and its evaluations over time."""
    out.mkdir()
    (out / "job.json").write_text(json.dumps(job))
    processes = []

    def start(kind, *flags):
        log = open(out / f"{kind}.{len(processes)}.err", "w")
        processes.append(subprocess.Popen([program / f"hdps-{kind}", f"--job={out}/job.json", *flags],
                                          stdin=subprocess.DEVNULL, stdout=log, stderr=log))
    try:
        start("scheduler", f"--out={out}/run", "--listen=tcp://127.0.0.1:0", f"--address_file={out}/address", "--servers=1",
              f"--workers={workers}", "--http=none")
        deadline = time.monotonic() + RUN_S_MAX
        while not (out / "address").exists() or not (out / "address").read_text().endswith("\n"):
            if processes[0].poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"async_quality.py: error: no scheduler: {(out / 'scheduler.0.err').read_text()[-600:]}")
            time.sleep(0.02)
        address = (out / "address").read_text().strip()
        start("server", f"--scheduler={address}", "--threads=1", "--http=none")
        for worker in range(workers):
            start("worker", f"--scheduler={address}", f"--rank={worker}", "--threads=1", "--http=none",
                  f"--faults={faults_of(worker, workers)}")
        if processes[0].wait(timeout=max(1.0, deadline - time.monotonic())) != 0:
            raise SystemExit(f"async_quality.py: error: {(out / 'scheduler.0.err').read_text()[-600:]}")
        for process in processes:
            process.wait(timeout=30)
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
            process.wait()
    summary = json.loads((out / "run/summary.json").read_text())
    lines = [json.loads(line) for line in (out / "run/metrics.jsonl").read_text().splitlines()]
    curve = [[round(line["time"], 3), line["eval_auc"]] for line in lines if line.get("eval_auc") is not None]
    rows = json.loads((out / "run/figures.json").read_text())["rows"]
    ages = [table["mean"] for table in rows["push_staleness"]["tables"]]
    return {"auc": summary["eval_auc"], "speed": summary["examples_per_second"], "curve": curve,
            "staleness": max(ages, default=0.0), "dropped": rows["examples_dropped"]}


def run_all(options, program):
    results = json.loads(options.results.read_text()) if options.cases else {}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name in options.sets:
            data = folder / name
            data.mkdir()
            make = {"planted": planted_job, "census": census_job, "criteo": criteo_job}[name]
            job, rows = make(data, program if name == "planted" else options.criteo)
            steps = rows * job["train"]["epochs"] // BATCH
            base = {"epochs": job["train"]["epochs"], "batch_size": BATCH, "eval_each_epoch": False,
                    "eval_every_steps": max(1, steps // EVALUATIONS)}
            job["parallel"] = {"gradients_mean": True}
            cases = [(mode, workers) for workers in options.workers for mode in MODES]
            cases += [(fix, max(options.workers)) for fix in FIXES]
            cases = [one for one in cases if not options.cases or one[0] in options.cases]
            results[name] = [one for one in results.get(name, []) if (one["case"], one["workers"]) not in cases]
            for case, workers in cases:
                job["train"] = {**base, **{**MODES, **FIXES}[case]}
                turns = []
                for turn in range(options.turns if workers == max(options.workers) else 1):
                    out = folder / f"{name}_{case.replace(' ', '_')}_{workers}_{turn}"
                    turns.append(train(program, with_rate(job, RATES.get(case, 1)), out, workers))
                    shutil.rmtree(out)
                result = {"case": case, "workers": workers, **middle_of(turns)}
                results[name].append(result)
                print(f"{name:8} {case:24} {workers} workers: AUC {result['auc']:.4f}, {result['speed']:,.0f} examples/s, "
                      f"rows {result['staleness']:.2f} clocks old", flush=True)
    return results


def middle_of(turns):
    """The run with the median of AUC, with all AUCs."""
    ordered = sorted(turns, key=lambda one: one["auc"])
    return {**ordered[(len(ordered) - 1) // 2], "aucs": [one["auc"] for one in ordered],
            "speed": statistics.median(one["speed"] for one in ordered)}


def find(results, case, workers):
    return next((one for one in results if one["case"] == case and one["workers"] == workers), None)


def table(results):
    """Lines of the page: a table for each set of data."""
    lines = []
    for name, runs in results.items():
        counts = sorted({one["workers"] for one in runs})
        lines += ["", f"### {name}", "", "| mode | " + " | ".join(f"{n} workers" if n > 1 else "1 worker" for n in counts) + " |",
                  "|---|" + "---|" * len(counts)]
        for case in MODES:
            cells = []
            for count in counts:
                one = find(runs, case, count)
                cells.append(f"{one['auc']:.4f}, {one['speed'] / 1000:.1f} k/s, {one['staleness']:.1f}" if one else "")
            lines.append(f"| {case} | " + " | ".join(cells) + " |")
        most = counts[-1]
        sync = find(runs, "sync", most)["auc"]
        lines += ["", f"| against old rows, {most} workers | AUC, least to most | from sync | examples/s | dropped examples |",
                  "|---|---|---|---|---|"]
        for case in [*MODES, *FIXES]:
            one = find(runs, case, most)
            if one:
                lines.append(f"| {case} | {one['auc']:.4f}, {one['aucs'][0]:.4f} to {one['aucs'][-1]:.4f} | {one['auc'] - sync:+.4f} | "
                             f"{one['speed']:,.0f} | {one['dropped']:,.0f} |")
    return lines


def within(results):
    """Says of each set of data which means come within 0.001 of sync, or how far the nearest is."""
    lines = []
    for name, runs in results.items():
        most = max(one["workers"] for one in runs)
        sync = find(runs, "sync", most)["auc"]
        apart = {case: find(runs, case, most)["auc"] - sync for case in ["ssp 1", "ssp 4", "ssp 16", *FIXES] if find(runs, case, most)}
        near = [case for case, by in apart.items() if by >= -0.001]
        nearest = max(apart, key=lambda case: apart[case])
        plain = find(runs, "async", most)["auc"] - sync
        lines.append(f"- **{name}**, {most} workers: async ends {plain:+.4f} from sync.")
        if not near:
            lines.append(f"  No means comes within 0.001; the nearest is {nearest}, {apart[nearest]:+.4f}.")
            continue
        told = [f"{case} {apart[case]:+.4f}" for case in near]
        lines.append("  Not more than 0.001 below sync:")
        lines += [f"  {', '.join(told[i:i + 3])}{',' if i + 3 < len(told) else '.'}" for i in range(0, len(told), 3)]
    return lines


def picture(results):
    """The curves of AUC over time as SVG: a row for each set of data, a column for each number of workers."""
    counts = sorted({one["workers"] for runs in results.values() for one in runs})
    width, height, left, top = 210, 150, 52, 44
    texts = []
    total_w, total_h = left + len(counts) * (width + 22) + 6, top + len(results) * (height + 46) + 10
    for c, case in enumerate(MODES):
        x = left + c * 90
        texts.append(f'<line x1="{x}" y1="14" x2="{x + 22}" y2="14" stroke="{COLOURS[case]}" stroke-width="2"/>'
                     f'<text x="{x + 27}" y="18">{case}</text>')
    for r, (name, runs) in enumerate(results.items()):
        points = [p for one in runs if one["case"] in MODES for p in one["curve"]]
        best = max(auc for _, auc in points)
        low = max(min(auc for _, auc in points), best - 0.06)
        for c, count in enumerate(counts):
            x0, y0 = left + c * (width + 22), top + r * (height + 46)
            here = [one for one in runs if one["workers"] == count and one["case"] in MODES]
            last = max(t for one in here for t, _ in one["curve"])
            texts.append(f'<rect x="{x0}" y="{y0}" width="{width}" height="{height}" fill="none" stroke="#c9d3da"/>'
                         f'<text x="{x0}" y="{y0 - 6}">{name}, {count} worker{"s" if count > 1 else ""}</text>'
                         f'<text x="{x0 + width}" y="{y0 + height + 14}" text-anchor="end">{last:.1f} s</text>'
                         f'<text x="{x0}" y="{y0 + height + 14}">0</text>')
            if c == 0:
                texts += [f'<text x="{x0 - 4}" y="{y0 + 10}" text-anchor="end">{best:.3f}</text>',
                          f'<text x="{x0 - 4}" y="{y0 + height}" text-anchor="end">{low:.3f}</text>']
            for one in here:
                path = " ".join(f"{x0 + t / last * width:.1f},"
                                f"{y0 + height - (min(max(auc, low), best) - low) / (best - low) * height:.1f}"
                                for t, auc in one["curve"])
                texts.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[one["case"]]}" stroke-width="1.6"/>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total_w} {total_h}" font-family="sans-serif" font-size="11" '
            f'fill="#1b1b1b"><rect width="{total_w}" height="{total_h}" fill="white"/>\n' + "\n".join(texts) + "\n</svg>\n")


def put(page, mark, lines):
    begin, end = f"<!-- {mark} -->", f"<!-- end of {mark} -->"
    text = page.read_text()
    if begin not in text or end not in text:
        raise SystemExit(f"async_quality.py: error: {page} has no place {begin}")
    head, tail = text[:text.index(begin) + len(begin)], text[text.index(end):]
    page.write_text(head + "\n" + "\n".join(lines).strip("\n") + "\n" + tail)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--criteo", type=pathlib.Path)
    parser.add_argument("--sets", type=lambda text: text.split(","), default=None)
    parser.add_argument("--workers", type=lambda text: [int(n) for n in text.split(",")], default=[1, 2, 4, 8])
    parser.add_argument("--cases", type=lambda text: text.split(","), default=[])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS)
    parser.add_argument("--page", type=pathlib.Path, default=PAGE)
    parser.add_argument("--draw", action="store_true")
    options = parser.parse_args()
    if options.sets is None:
        options.sets = ["planted", "census"] + (["criteo"] if options.criteo else [])
    if "criteo" in options.sets and options.criteo is None and not options.draw:
        parser.error("--sets: criteo needs --criteo=FILE, a sample in Criteo's layout, .tsv.gz")
    if options.criteo is not None and not options.criteo.is_file():
        parser.error(f"--criteo={options.criteo}: there is no such file")
    if unknown := set(options.cases) - {*MODES, *FIXES}:
        parser.error(f"--cases: there is no case {', '.join(sorted(unknown))}; there are {', '.join([*MODES, *FIXES])}")
    began = time.monotonic()
    if not options.draw:
        results = run_all(options, options.bin.resolve())
        options.results.write_text(json.dumps(results, indent=None, separators=(",", ":")) + "\n")
    results = json.loads(options.results.read_text())
    put(options.page, "figures", table(results))
    put(options.page, "within", within(results))
    options.page.with_suffix(".svg").write_text(picture(results))
    print(f"{options.page} and its picture are made, {time.monotonic() - began:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
