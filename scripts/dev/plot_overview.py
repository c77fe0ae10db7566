#!/usr/bin/python3
"""Draws an overview of the speed of hdps, beside the best PyTorch of each case and the machine's limits.

usage: scripts/dev/plot_overview.py JSON... --out=FILE.svg

JSON are files of `hdps-bench NAME --json=FILE` and `benchmarks/peers/compare.py --json=FILE`, in any
order; figures that none of them has are left out and listed. Needs python3-matplotlib
(scripts/install_deps.sh --plots).
"""
import argparse
import json
import pathlib
import sys

from plot_bench import FAINT, FIGURE, LIMIT, YARDSTICK, note, plt, shown

LIGHT = "#7fb0d2"  # hdps as daemons, beside hdps in one process.

# Case of compare.py -> words.
PEERS = {
    "large_dim16": "Wide&Deep, MLP 1024-512-256-128, dim 16",
    "large_dim80": "the same, dim 80, 39 keys",
    "small": "Wide&Deep, MLP 64-32, dim 16",
    "peers": "26 keys, MLP 256-128-64, batch 1024",
}
# Fields read from a figure of compare.py.
PEER_FIELDS = ["case", "system", "precision", "version", "examples_per_second", "ratio", "best_peer",
               "cpu", "vector_extensions", "threads"]
COLOURS = {"hdps, one process": FIGURE, "hdps, 1 server + 1 worker": LIGHT}

# (bench, case, figure, yardstick) -> words for the figure, words for its limit.
LIMITS = {
    ("end_to_end", "wide_deep_criteo_shape_cpu", "examples", "matrix products alone"):
        ("training, large MLP, dim 16, 1 server + 1 worker", "its matrix products alone"),
    ("end_to_end", "wide_deep_39_fields_dim80_cpu", "examples", "matrix products alone"):
        ("training, dim 80, each row multiplied once", "its matrix products alone"),
    ("table", "rowwise_adagrad_dim16_20M_zipf_2t", "pull", "the same lines"):
        ("rows read, dim 16, Zipf", "the same lines touched"),
    ("table", "rowwise_adagrad_dim64_20M_zipf_2t", "pull", "the same lines"):
        ("rows read, dim 64, Zipf", "the same lines touched"),
    ("table", "rowwise_adagrad_dim16_20M_zipf_2t", "push", "the same lines"):
        ("rows updated, dim 16, Zipf", "the same lines touched"),
    ("table", "rowwise_adagrad_dim64_20M_zipf_2t", "push", "the same lines"):
        ("rows updated, dim 64, Zipf", "the same lines touched"),
    ("wire", "tcp_1MiB", "moved", "bare tcp socket"):
        ("messages of 1 MiB over tcp", "a bare socket"),
    ("pullpush", "tcp_1s_1w_dim16_batch4096", "pull", "rows alone"):
        ("pull of dim 16, process to process", "rows without a message"),
    ("pullpush", "tcp_1s_1w_dim16_batch4096", "push", "rows alone"):
        ("push of dim 16, process to process", "rows without a message"),
    ("disk_tier", "large_mlp_4_times", "examples, same digest", "without a limit"):
        ("training, a table 4 times its memory limit", "without a limit"),
}


def load(paths):
    """(results of hdps-bench by LIMITS' keys, results of compare.py, about the machine)."""
    limits, peers, about = {}, [], ""
    for path in paths:
        try:
            read = json.loads(pathlib.Path(path).read_text())
            if isinstance(read, list):
                peers += [{field: r[field] for field in PEER_FIELDS} for r in read
                          if r["phase"] == "rows there"]
                continue
            machine = read["machine"]
            about = (f"{machine['cpu']}, {read['setting']['threads']} threads, "
                     f"{machine['vector_width']}; commit {read['commit']}, {read['time'][:10]}; medians")
            for r in read["results"]:
                limits[r["bench"], r["case"], r["figure"], r.get("yardstick")] = r
        except (OSError, ValueError, KeyError, TypeError) as error:
            sys.exit(f"plot_overview.py: error: {path} is not what hdps-bench or compare.py writes: {error}")
    return limits, peers, about


def bars_of(case, peers):
    """Yields (words, examples/s, color) of the best peer and of hdps for each measured precision."""
    of_case = {r["system"]: r for r in peers if r["case"] == case}
    for precision in dict.fromkeys(r["precision"] for r in of_case.values()):
        alike = {name: r for name, r in of_case.items() if r["precision"] == precision}
        for name, r in alike.items():
            speed = r["examples_per_second"]
            if name == r["best_peer"]:
                words = name.replace("pytorch", r["version"])
                yield f"{words}: {shown(speed)} examples/s", speed, YARDSTICK
        for name, r in alike.items():
            if name.startswith("hdps"):
                speed = r["examples_per_second"]
                times = "" if r["ratio"] is None else f", {r['ratio']:.2f} times that"
                colour = COLOURS[name.replace(" " + precision, "")]
                yield f"{name}: {shown(speed)} examples/s{times}", speed, colour


def draw_peers(axes, peers):
    y, ticks = 0.0, []
    for case, words in PEERS.items():
        bars = list(bars_of(case, peers))
        if not bars:
            print(f"plot_overview.py: no figures of {case}")
            continue
        base = max(speed for _, speed, _ in bars)
        ticks.append((y, words))
        for said, speed, colour in bars:
            axes.barh(y, speed / base, 0.8, color=colour)
            note(axes, speed / base, y, said, fontsize=8)
            y += 0.9
        y += 0.6
    axes.set_yticks([at for at, _ in ticks], [words for _, words in ticks])
    axes.invert_yaxis()
    axes.set_xlim(0, 2.15)
    axes.set_xticks([])
    r = peers[0]
    axes.set_xlabel(f"{r['cpu']} ({', '.join(r['vector_extensions'])}), {r['threads']} threads; "
                    "medians of turns, rows there", loc="left", color=FAINT)
    axes.set_title("Beside the best PyTorch of each case and precision, on the same cores", loc="left",
                   weight="bold")


def draw_limits(axes, limits):
    for key in LIMITS.keys() - limits.keys():
        print(f"plot_overview.py: no figure of {' / '.join(key)}")
    there = [(words, limits[key]) for key, words in LIMITS.items() if key in limits]
    for y, ((_, limit), r) in enumerate(there):
        axes.barh(y, r["ratio"], 0.7, color=FIGURE)
        note(axes, r["ratio"], y, f"{r['ratio']:.2f} of {limit}", fontsize=8, color=FAINT)
    axes.set_yticks(range(len(there)), [words for (words, _), _ in there])
    axes.invert_yaxis()
    axes.axvline(1, color=LIMIT, linestyle="--", linewidth=1)
    axes.margins(x=0.3)
    axes.set_title("Beside what this machine allows, measured in the same run", loc="left", weight="bold")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("json", nargs="+", help="what hdps-bench and compare.py wrote with --json")
    parser.add_argument("--out", required=True, help="the picture")
    arguments = parser.parse_args()
    limits, peers, about = load(arguments.json)
    bars = sum(len(list(bars_of(case, peers))) for case in PEERS)
    heights = ([1.2 + 0.3 * bars] if peers else []) + ([4.5] if limits or not peers else [])
    figure, axes = plt.subplots(len(heights), 1, figsize=(10, sum(heights)), squeeze=False,
                                layout="constrained", gridspec_kw={"height_ratios": heights})
    if peers:
        draw_peers(axes[0, 0], peers)
    if limits or not peers:
        draw_limits(axes[-1, 0], limits)
    figure.suptitle(f"hdps: speed at a glance\n{about}", ha="left", x=0.01)
    figure.savefig(arguments.out, metadata={"Date": None})
    print(arguments.out)


if __name__ == "__main__":
    main()
