#!/usr/bin/env python3
"""Measures how much of the time of a device's copies overlaps with its computation.

usage: scripts/dev/hidden_copies.py TRACE.json [--skip_ms=0]

TRACE is the file of `hdps train --trace` for a job on a GPU. Copies that begin in the first skip_ms of a
worker's device do not count, because memory grows in this time.
"""
import argparse
import json
import pathlib
import sys

TRACKS = {"copy up": "device, copy up", "copy down": "device, copy down", "compute": "device, compute"}


def union(spans):
    """Disjoint spans in order that cover the same times."""
    merged = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([begin, end])
    return merged


def overlap(a, b):
    """Returns the time that is in both lists, each of disjoint spans in order."""
    total, i, j = 0.0, 0, 0
    while i < len(a) and j < len(b):
        total += max(0.0, min(a[i][1], b[j][1]) - max(a[i][0], b[j][0]))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return total


def hidden(events, skip_us=0.0):
    """Returns the microseconds of copies, of their overlap with the worker's compute, and the share or None."""
    spans = {}
    for event in events:
        if event.get("ph") == "X" and event["name"] in TRACKS:
            spans.setdefault(event["pid"], {}).setdefault(event["name"], []).append(
                (event["ts"], event["ts"] + event["dur"]))
    copied = under = computed = 0.0
    for kinds in spans.values():
        first = min(begin for kind in kinds.values() for begin, _ in kind)
        kept = {name: union(s for s in kind if name == "compute" or s[0] >= first + skip_us)
                for name, kind in kinds.items()}
        compute = kept.get("compute", [])
        computed += sum(end - begin for begin, end in compute)
        # A copy up beside a copy down counts twice: each has to be hidden.
        for name in ("copy up", "copy down"):
            copied += sum(end - begin for begin, end in kept.get(name, []))
            under += overlap(kept.get(name, []), compute)
    return {"copy_us": copied, "hidden_us": under, "compute_us": computed,
            "hidden_share": under / copied if copied else None}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace")
    parser.add_argument("--skip_ms", type=float, default=0)
    flags = parser.parse_args()
    try:
        found = hidden(json.loads(pathlib.Path(flags.trace).read_text())["traceEvents"], 1e3 * flags.skip_ms)
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"hidden_copies.py: error: {flags.trace} is not what hdps train --trace writes: {error}",
              file=sys.stderr)
        return 2
    if found["hidden_share"] is None:
        print(f"hidden_copies.py: error: {flags.trace} has no copies of a device; train with "
              "--set=model.device=cuda", file=sys.stderr)
        return 2
    print(f"copies hidden under compute: {100 * found['hidden_share']:.1f} % of {found['copy_us'] / 1e3:.2f} ms; "
          f"computing took {found['compute_us'] / 1e3:.2f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
