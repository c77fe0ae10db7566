#!/usr/bin/env python3
"""Draws the speed of hdps at a glance: beside PyTorch, and beside what the machine allows.

usage: scripts/dev/plot_overview.py JSON... --out=FILE.svg

JSON is what `hdps-bench NAME --json=FILE` and `benchmarks/peers/compare.py --json=FILE` write, in any
order; what none of them holds is left out and named. Nothing but Python's own library is needed.
"""
import argparse
import json
import pathlib
import sys

from plot_bench import FAINT, FIGURE, INK, RULE, WIDTH, YARDSTICK, bar, shown, text

LABELS, VALUES, BAR, ROW, LIMIT = 330, 240, 15, 22, "#c0392b"
LIGHT = "#7fb0d2"  # hdps as daemons, beside hdps in one process.

# Case of compare.py -> words.
PEERS = {
    "large_dim16": "Wide&Deep, MLP 1024-512-256-128, dim 16",
    "large_dim80": "the same, dim 80, 39 keys",
    "small": "Wide&Deep, MLP 64-32, dim 16",
    "peers": "26 keys, MLP 256-128-64, batch 1024",
}
SYSTEMS = {"pytorch": YARDSTICK, "hdps, one process": FIGURE, "hdps, 1 server + 1 worker": LIGHT}

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
                peers += [r for r in read if r["phase"] == "rows there"]
                continue
            machine = read["machine"]
            about = (f"{machine['cpu']}, {read['setting']['threads']} threads, "
                     f"{machine['vector_width']}; commit {read['commit']}, {read['time'][:10]}; medians")
            for r in read["results"]:
                limits[r["bench"], r["case"], r["figure"], r.get("yardstick")] = r
        except (OSError, ValueError, KeyError, TypeError) as error:
            sys.exit(f"plot_overview.py: error: {path} is not what hdps-bench or compare.py writes: {error}")
    return limits, peers, about


def draw_peers(peers, y):
    lines = [text(16, y, "Beside PyTorch on the same cores", 15, INK, weight="bold"),
             text(WIDTH - 16, y, "times PyTorch", 12, FIGURE, "end", "bold")]
    y += 12
    width = WIDTH - LABELS - VALUES
    for case, words in PEERS.items():
        of_case = {r["system"]: r for r in peers if r["case"] == case}
        if not of_case:
            print(f"plot_overview.py: no figures of {case}")
            continue
        scale = width / max(r["examples_per_second"] for r in of_case.values())
        lines.append(f"<line x1='16' x2='{WIDTH - 16}' y1='{y}' y2='{y}' stroke='{RULE}'/>")
        y += 20
        lines.append(text(16, y - 4, words, 12, weight="bold"))
        for system, colour in SYSTEMS.items():
            if system not in of_case:
                continue
            rate = of_case[system]["examples_per_second"]
            lines.append(bar(LABELS, y, scale * rate, colour))
            lines.append(text(LABELS + width + 12, y + BAR - 3, f"{shown(rate)} examples/s", 11, FAINT))
            if system == "pytorch":
                lines.append(text(LABELS - 8, y + BAR - 3, "PyTorch", 11, FAINT, "end"))
            else:
                place = "one process" if "process" in system else "1 server + 1 worker"
                lines.append(text(LABELS - 8, y + BAR - 3, place, 11, FAINT, "end"))
                lines.append(text(WIDTH - 16, y + BAR - 3, f"{of_case[system]['ratio']:.1f}", 13, FIGURE,
                                  "end", "bold"))
            y += BAR + 3
        y += 7
    return lines, y


def draw_limits(limits, y):
    lines = [text(16, y, "Beside what this machine allows, measured in the same run", 15, INK,
                  weight="bold"),
             text(WIDTH - 16, y, "of the limit", 12, FIGURE, "end", "bold")]
    y += 14
    there = [(words, limits[key]) for key, words in LIMITS.items() if key in limits]
    for key in LIMITS.keys() - limits.keys():
        print(f"plot_overview.py: no figure of {' / '.join(key)}")
    if not there:
        return lines, y
    width = WIDTH - LABELS - VALUES
    scale = width / max(1.0, *(r["ratio"] for _, r in there))
    begin = y
    for (words, limit), r in there:
        lines.append(text(LABELS - 8, y + BAR - 3, words, 12, INK, "end"))
        lines.append(bar(LABELS, y, scale * r["ratio"], FIGURE))
        lines.append(text(LABELS + width + 12, y + BAR - 3, f"limit: {limit}", 11, FAINT))
        lines.append(text(WIDTH - 16, y + BAR - 3, f"{r['ratio']:.2f}", 13, FIGURE, "end", "bold"))
        y += ROW
    at = LABELS + scale
    lines.append(f"<line x1='{at:.1f}' x2='{at:.1f}' y1='{begin - 4}' y2='{y - 2}' stroke='{LIMIT}' "
                 "stroke-width='1.5' stroke-dasharray='4 3'/>")
    return lines, y


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("json", nargs="+", help="what hdps-bench and compare.py wrote with --json")
    parser.add_argument("--out", required=True, help="the picture")
    arguments = parser.parse_args()
    limits, peers, about = load(arguments.json)
    lines = [text(16, 30, "hdps: speed at a glance", 18, INK, weight="bold"), text(16, 50, about, 11, FAINT)]
    y = 84
    if peers:
        made, y = draw_peers(peers, y)
        lines += made
        y += 26
    made, y = draw_limits(limits, y)
    lines += made
    y += 12
    head = f"<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{y}' viewBox='0 0 {WIDTH} {y}'>"
    pathlib.Path(arguments.out).write_text(
        "\n".join([head, f"<rect width='{WIDTH}' height='{y}' fill='white'/>", *lines, "</svg>"]) + "\n")
    print(arguments.out)


if __name__ == "__main__":
    main()
