"""Measures what the arrival of newer checkpoints costs a server under load: a full one of a GiB, and deltas of 100,000 rows.

The checkpoints are those of a real run. They come into the folder that is served one after the other: all files first, as
links, and the manifest last.
"""
import json
import os
import shutil
import sys
import time

import inference_requests as requests
import made_model
from measured_server import MODEL, Load, hdps_server

# 26 columns of 620,000 values, of which 80 % have rows: 1 GiB of keys and weights.
VALUES, TIMES = 620_000, 1.613
DELTAS, DELTA_SECONDS = 12, 5
RATE_LEAST = 10_000  # Predictions in any second.
CONNECTIONS = 32


def made_checkpoints(programs, folder):
    """A run with a full checkpoint, another full one, and deltas behind it; their folders in this order."""
    made = made_model.Made(programs, folder, VALUES, TIMES)
    first = max(made.checkpoints())
    if len(made.checkpoints()) <= 1:
        full = first + 2  # Steps; the deltas of the first one are not used.
        made.train(train__epochs=2, train__max_steps=full + DELTAS + 1, checkpoint__every_steps=full,
                   checkpoint__delta_every_steps=1, checkpoint__keep=9)
    is_delta = {step: "base" in json.loads((place / "manifest.json").read_text())["checkpoint"]
                for step, place in made.checkpoints().items()}
    fulls = [step for step in sorted(is_delta) if not is_delta[step]]
    deltas = [step for step in sorted(is_delta) if is_delta[step] and step > fulls[1]][:DELTAS]
    if len(deltas) < DELTAS:
        raise SystemExit(f"serving.py: error: {folder} has too few deltas: {is_delta}")
    return made, fulls[:2], deltas


class Arrivals:
    """A folder of checkpoints that is served, and when each manifest came."""

    def __init__(self, made, folder):
        self.made, self.folder, self.came = made, folder / "checkpoint", {}
        shutil.rmtree(folder, ignore_errors=True)

    def add(self, step):
        of = self.made.checkpoints()[step]
        to = self.folder / of.name
        to.mkdir(parents=True)
        for file in sorted(of.rglob("*")):
            if file.is_file() and file.name != "manifest.json":
                (to / file.relative_to(of)).parent.mkdir(parents=True, exist_ok=True)
                os.link(file, to / file.relative_to(of))
        os.link(of / "manifest.json", to / "manifest.json")
        self.came[step] = time.time()


def bytes_of(folder):
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def under_load(load, server, rate, seconds, arrivals=(), first_after=3.0, every=DELTA_SECONDS):
    """The figures of a load during which checkpoints come, and the most memory as a multiple of that before."""
    before, _ = server.memory()
    server.reset_peak()
    started = load.start(server, rate=rate, seconds=seconds, connections=CONNECTIONS)
    begin = time.monotonic()
    for number, arrive in enumerate(arrivals):
        time.sleep(max(0.0, begin + first_after + number * every - time.monotonic()))
        arrive()
    figures = Load.figures(started)
    figures["memory_before"], figures["memory_most"] = before, server.memory()[1]
    return figures


def failed(figures):
    return sum(figures["failures"].values())


def seen_after(figures, came, steps):
    """Seconds from the manifest of each step to the first answer by it; infinite where there is none."""
    return [figures["versions"].get(str(step), {}).get("first_seen", float("inf")) - came[step] for step in steps]


def measure(programs, folder):
    """(lines with aims, all figures)"""
    made, fulls, deltas = made_checkpoints(programs, folder / "gib")
    rows = requests.rows_of(made.eval, made_model.EVAL_ROWS)
    checkpoints = made.checkpoints()
    figures = {"full_bytes": bytes_of(checkpoints[fulls[1]]), "delta_bytes": bytes_of(checkpoints[deltas[0]])}
    arrivals = Arrivals(made, folder / "served")
    arrivals.add(fulls[0])
    with hdps_server(programs, folder / "served") as server:
        load = Load(programs, folder, "refresh", [requests.as_json(server.host, MODEL, batch)
                                                  for batch in requests.batches(rows, 32)], 32)
        figures["capacity"] = load.run(server, seconds=3)
        rate = max(1.05 * RATE_LEAST, figures["capacity"]["rows_a_second"] / 2)
        print(f"serving.py: {rate:.0f} rows/s while checkpoints come", file=sys.stderr)
        figures["quiet"] = under_load(load, server, rate, 20)
        figures["full"] = under_load(load, server, rate, 20, [lambda: arrivals.add(fulls[1])])
    # Anew, so that the memory of one model is that of one model alone.
    with hdps_server(programs, folder / "served") as server:
        load = Load(programs, folder, "refresh", [requests.as_json(server.host, MODEL, batch)
                                                  for batch in requests.batches(rows, 32)], 32)
        load.run(server, seconds=2)
        figures["deltas"] = under_load(load, server, rate, 5 + DELTAS * DELTA_SECONDS,
                                       [lambda step=step: arrivals.add(step) for step in deltas])
    figures["seen_after_s"] = {"full": seen_after(figures["full"], arrivals.came, fulls[1:]),
                               "deltas": seen_after(figures["deltas"], arrivals.came, deltas)}
    shutil.rmtree(folder / "served")
    return lines_of(figures), figures


def lines_of(figures):
    """(what, figure, unit, aim) of each line."""
    quiet_ms = figures["quiet"]["p99_ms"]
    p99_aim = max(2 * quiet_ms, 5)
    lines = [("bytes of the full checkpoint", figures["full_bytes"] / 2**20, "MiB", 1024, False),
             ("bytes of a delta", figures["delta_bytes"] / 2**20, "MiB", None, False),
             ("p99 without", quiet_ms, "ms", None, True)]
    for name, memory in (("full", 2.1), ("deltas", 1.2)):
        of = figures[name]
        lines += [(f"{name}: failed answers", failed(of), "", 0, True),
                  (f"{name}: answers that changed within a version", of["changed_answers"], "", 0, True),
                  (f"{name}: p99", of["p99_ms"], "ms", p99_aim, True),
                  (f"{name}: p99 of the worst second", of["worst_second"]["p99_ms"], "ms", 10, True),
                  (f"{name}: rows of the worst second", of["worst_second"]["rows"], "rows/s", RATE_LEAST, False),
                  (f"{name}: memory over one model", of["memory_most"] / of["memory_before"], "", memory, True)]
    lines.append(("full: from its manifest to answers", max(figures["seen_after_s"]["full"]), "s", None, True))
    lines.append(("deltas: from the manifest to answers", max(figures["seen_after_s"]["deltas"]), "s", 2, True))
    return [(what, value, unit, "" if aim is None else f"{'<=' if most else '>='} {aim:g}")
            for what, value, unit, aim, most in lines]
