#!/usr/bin/env python3
"""Compares two builds of hdps: the results must be the same, and the new build no slower.

usage: scripts/dev/compare_builds.py --before=DIR [--after=build/bin] [--turns=5]
           [--bench=NAME[:CASE],...] [--repeats=3] [--floor=0.97] [--results-only] [--speed-only]

DIR is the `bin` folder of the old build. Results: the digests of REF-S and of the census job, which must
also continue from a checkpoint of the old build; a dump of that checkpoint, and the predictions from it.
Speed: both builds run each benchmark in turns, and for each figure the median of after / before over the
turns counts (before / after if less is better). A figure with a yardstick is divided by it. Exit status
1: a result differs, or a median is below the floor.
"""
import argparse
import collections
import hashlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "end_to_end"))
import harness  # noqa: E402

# Figures of these units are better when they are smaller.
SMALLER_IS_BETTER = {"s", "ms", "us", "ns", "MiB", "bytes"}
BENCHES = "end_to_end:small,table,pullpush,reader"


def run(command, **kwargs):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True,
                          **kwargs)
    if done.returncode != 0:
        sys.exit(f"compare_builds.py: error: {' '.join(map(str, command))} ended with {done.returncode}:\n"
                 f"{done.stderr.decode(errors='replace')[-3000:]}")
    return done.stdout


def train(programs, job, out, *flags):
    run([programs / "hdps", "train", f"--job={job}", f"--out={out}", *flags])
    return json.loads((out / "summary.json").read_text())["digest"]


def results(programs, old_programs, folder):
    """Maps the name of a result to a text that must be the same for both builds."""
    census, mine = harness.CENSUS, folder / "new"
    mine.mkdir()
    found = {"census, 2 servers, 2 workers": train(programs, census, mine / "census", "--servers=2",
                                                   "--workers=2")}
    found["REF-S, 2 servers, 2 workers"] = train(programs, folder / "job.json", mine / "ref_s", "--servers=2",
                                                 "--workers=2")
    # The old build writes a checkpoint in the middle of a run.
    train(old_programs, census, mine / "half", "--set=train.epochs=1")
    checkpoint = mine / "half" / "checkpoint"
    for what, command in {
            "predictions from a checkpoint of before":
                ["predict", f"--job={census}", f"--data={ROOT}/examples/census/adult.test.gz"],
            "evaluation of a checkpoint of before": ["evaluate", f"--job={census}"]}.items():
        text = run([programs / "hdps", *command, f"--checkpoint={checkpoint}"])
        found[what] = hashlib.sha256(text.replace(str(mine).encode(), b"")).hexdigest()
    # A build that knows more settings takes them for changed ones.
    resume = "changed" if b"changed" in run([programs / "hdps", "train", "--help"]) else "auto"
    found["census, gone on from a checkpoint of before"] = train(
        programs, census, mine / "half", f"--resume={resume}", "--set=train.epochs=2")
    mine.rename(folder / f"done_{len(list(folder.glob('done_*')))}")
    return found


def same_results(before, after, folder):
    data = folder / "data"
    run([after / "hdps", "generate", f"--out={data}", "--rows=51200", "--eval_rows=2048",
         "--vocabulary=20000", "--zipf=1.05", "--seed=1"])
    harness.write_job(folder / "job.json", harness.reference_job(data))
    old, new = (results(programs, before, folder) for programs in (before, after))
    for name, text in old.items():
        same = new[name] == text
        print(f"{'same' if same else 'DIFFERS':8} {name}: {text[:16]}"
              + ("" if same else f", after: {new[name][:16]}"), flush=True)
    return old == new


def figures(programs, bench, repeats, folder):
    name, _, case = bench.partition(":")
    file = folder / "bench.json"
    run([programs / "hdps-bench", name, "--quick", f"--repeats={repeats}", f"--json={file}"]
        + ([f"--case={case}"] if case else []), env={**os.environ, "HDPS_BIN": str(programs)})
    for one in json.loads(file.read_text())["results"]:
        better = 1 / one["value"] if one["unit"] in SMALLER_IS_BETTER and one["value"] else one["value"]
        by_yardstick = one["unit"] not in SMALLER_IS_BETTER and one.get("ratio")
        yield f"{one['case']} {one['figure']}", by_yardstick or better


def no_slower(before, after, flags, folder):
    ratios = collections.defaultdict(list)
    for turn in range(flags.turns):
        for bench in flags.bench.split(","):
            order = ((before, after), (after, before))[turn % 2]
            found = {programs: dict(figures(programs, bench, flags.repeats, folder)) for programs in order}
            for figure, value in found[before].items():
                if value and found[after].get(figure):
                    ratios[f"{bench.partition(':')[0]}: {figure}"].append(found[after][figure] / value)
            print(f"turn {turn + 1} of {flags.turns}, {bench}: medians " +
                  ", ".join(f"{statistics.median(values):.2f}" for figure, values in sorted(ratios.items())
                            if figure.startswith(bench.partition(":")[0])), file=sys.stderr, flush=True)
    fine = True
    for figure, values in sorted(ratios.items()):
        median = statistics.median(values)
        fine &= median >= flags.floor
        print(f"{'slower' if median < flags.floor else 'fine':8} {median:5.2f} ({min(values):.2f} to "
              f"{max(values):.2f}) {figure}")
    return fine


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--before", required=True, type=pathlib.Path)
    parser.add_argument("--after", default=ROOT / "build" / "bin", type=pathlib.Path)
    parser.add_argument("--turns", default=5, type=int)
    parser.add_argument("--bench", default=BENCHES)
    parser.add_argument("--floor", default=0.97, type=float)
    parser.add_argument("--repeats", default=3, type=int)
    parser.add_argument("--results-only", action="store_true")
    parser.add_argument("--speed-only", action="store_true")
    flags = parser.parse_args()
    before, after = flags.before.resolve(), flags.after.resolve()
    for programs in (before, after):
        if not (programs / "hdps").exists():
            parser.error(f"no program 'hdps' in {programs}: build it first")
    with tempfile.TemporaryDirectory(prefix="hdps_compare_") as folder:
        fine = flags.speed_only or same_results(before, after, pathlib.Path(folder))
        if not flags.results_only:
            fine &= no_slower(before, after, flags, pathlib.Path(folder))
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
