#!/usr/bin/env python3
"""Measures hdps serve on the cores that it shares with its load, beside the scoring of the same rows without requests.

  benchmarks/serving/serving.py --bin=build/bin [--folder=DIR] [--repeats=3] [--seconds=3] [--json=FILE] [--refresh | --batch_wait]

Data and model are made in DIR, where they stay: 13 numbers and 26 categories, 256-128-64, dim 16, a million rows of
embeddings. The figure of each line is the median of the repeats; loads take turns. Requests of the loads at half the rate
are sent at planned times, and latency counts from these. --refresh measures what the arrival of newer checkpoints costs,
--batch_wait what hdps serve --batch_wait_us brings to requests of one row.
"""
import argparse
import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys

import inference_requests as requests
import joined
import made_model
import refresh
from measured_server import MODEL, Load, hdps_server

VALUES, TIMES = 40_000, 5  # 26 columns of 40,000 values: a million rows, of which 99 % are there.


def fail(message):
    print("serving.py: error: " + message, file=sys.stderr)
    sys.exit(2)


class Measured:
    """Samples of figures by name, and the table of their medians."""

    def __init__(self):
        self.samples = {}

    def add(self, name, value):
        self.samples.setdefault(name, []).append(value)

    def median(self, name):
        return statistics.median(self.samples[name])


def loads_of(programs, folder, host, rows):
    """The loads by name, for a server whose name is `host`."""
    by_32, by_512 = requests.batches(rows, 32), requests.batches(rows, 512)
    one_user = [requests.with_one_user(batch) for batch in by_512]
    messages = {
        "json, 32 rows": (32, [requests.as_json(host, MODEL, batch) for batch in by_32]),
        "binary, 32 rows": (32, [requests.as_binary(host, MODEL, batch) for batch in by_32]),
        "json, 1 row": (1, [requests.as_json(host, MODEL, [row]) for row in rows[:4096]]),
        "json, 512 whole rows": (512, [requests.as_json(host, MODEL, batch) for batch in one_user]),
        "json, 1 user, 512 candidates": (512, [requests.as_json(host, MODEL, batch, requests.USER) for batch in one_user]),
    }
    return {name: Load(programs, folder, name.replace(" ", "_").replace(",", ""), of, rows)
            for name, (rows, of) in messages.items()}


def answered(load, server, folder, seconds):
    """The bits of the answer to each request, which are asked for so long, or longer until each was."""
    file = pathlib.Path(folder) / "answers"
    while True:
        load.run(server, seconds=seconds, answers=file)
        answers = requests.split(file.read_bytes())
        if len(answers) == len(load.messages):
            return [requests.scores(*answer) for answer in answers]
        seconds *= 2
        if seconds > 60:
            fail(f"{load.name}: {len(answers)} of {len(load.messages)} requests are answered")


def check_answers(loads, server, folder, wanted, seconds=1.0):
    """Each form gives the bits of hdps predict; a user that is sent once counts for all candidates."""
    bits = {name: b"".join(answered(load, server, folder, seconds)) for name, load in loads.items()}
    predicted = struct.pack(f"<{len(wanted)}f", *wanted)
    for name in ("json, 32 rows", "binary, 32 rows", "json, 1 row"):
        if not bits[name] or not predicted.startswith(bits[name]):
            fail(f"{name}: the answers differ from hdps predict")
    if bits["json, 512 whole rows"] != bits["json, 1 user, 512 candidates"]:
        fail("the answers for one user and 512 candidates differ from those of whole rows")


def scoring_rate(programs, made, seconds, calls):
    """Rows a second that a process scores from ready tables of 32 rows."""
    text = made_model.run(pathlib.Path(programs) / "hdps-load", f"--checkpoint={made.out}", f"--data={made.eval}",
                          f"--calls={calls}", f"--seconds={seconds}", "--rows=32")
    return json.loads(text)["rows_a_second"]


def one_turn(flags, made, server, loads, measured):
    """A sample of each figure."""
    for calls in (1, 2):
        measured.add(f"scoring alone, {calls} at once", scoring_rate(flags.bin, made, flags.seconds, calls))
    for name, load in loads.items():
        found = load.run(server, seconds=flags.seconds)
        if found["failures"]:
            fail(f"{name}: {found['failures']} {found.get('first_failure', '')}")
        measured.add(name, found["rows_a_second"])
        measured.add(f"{name}: server us/row", found["server_us_a_row"])
        measured.add(f"{name}: load us/row", found["load_us_a_row"])
    for name in ("json, 32 rows", "binary, 32 rows", "json, 1 row"):
        for gaps in ("even", "random"):
            found = loads[name].run(server, rate=measured.samples[name][0] / 2, seconds=flags.seconds, connections=32,
                                    gaps=gaps)
            if found["failures"]:
                fail(f"{name}, half rate: {found['failures']} {found.get('first_failure', '')}")
            for figure in ("p50_ms", "p99_ms", "p999_ms", "sent_late_p99_ms"):
                measured.add(f"{name}, half rate, {gaps} gaps: {figure}", found[figure])


def lines_of(measured):
    """(what, figure, unit, aim) of each line."""
    of = measured.median
    alone = of("scoring alone, 1 at once")
    rows = [("JSON, batches of 32", of("json, 32 rows"), "rows/s", ">= 20000"),
            ("binary, batches of 32", of("binary, 32 rows"), "rows/s", ""),
            ("binary over scoring alone", of("binary, 32 rows") / alone, "", ">= 0.5"),
            ("binary over two scoring alone", of("binary, 32 rows") / of("scoring alone, 2 at once"), "", ">= 0.5")]
    for name in ("json, 32 rows", "binary, 32 rows"):
        rows += [(f"{name}, half rate: p50", of(f"{name}, half rate, even gaps: p50_ms"), "ms", "<= 1"),
                 (f"{name}, half rate: p99", of(f"{name}, half rate, even gaps: p99_ms"), "ms", "<= 5")]
    rows += [("JSON, 1 row, half rate: p99", of("json, 1 row, half rate, even gaps: p99_ms"), "ms", "<= 2"),
             ("one user with 512 over 512 whole rows",
              of("json, 1 user, 512 candidates") / of("json, 512 whole rows"), "", ">= 1.3")]
    return rows


def kept(value, aim):
    """Whether a figure keeps an aim such as ">= 0.5"; one without an aim does."""
    if not aim:
        return True
    sign, bound = aim.split()
    return value >= float(bound) if sign == ">=" else value <= float(bound)


def print_table(lines):
    for what, value, unit, aim in lines:
        text = f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
        print(f"{what:45} {text:>12} {unit:7} {aim:10} {'' if not aim else 'kept' if kept(value, aim) else 'MISSED'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, default="build/bin", help="folder of hdps and hdps-load")
    parser.add_argument("--folder", type=pathlib.Path, default="/tmp/hdps_serving", help="where data and models stay")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3, help="length of each load")
    parser.add_argument("--json", type=pathlib.Path, help="file that gets all figures")
    parser.add_argument("--refresh", action="store_true", help="measure the arrival of newer checkpoints instead")
    parser.add_argument("--batch_wait", action="store_true", help="measure requests of one row that wait for others instead")
    flags = parser.parse_args()
    for program in ("hdps", "hdps-load"):
        if not (flags.bin / program).exists():
            fail(f"there is no {program} in {flags.bin}; build first, or give --bin=FOLDER")
    flags.folder.mkdir(parents=True, exist_ok=True)
    if flags.refresh:
        lines, figures = refresh.measure(flags.bin, flags.folder)
    elif flags.batch_wait:
        made, rows = made_and_rows(flags)
        measured = Measured()
        joined.measure(flags.bin, flags.folder, made, rows, measured, flags.repeats, flags.seconds)
        lines, figures = joined.lines_of(measured), measured.samples
    else:
        lines, figures = measure(flags)
    print_table(lines)
    result = {"cores": os.cpu_count(),
              "lines": [{"what": what, "value": value, "unit": unit, "aim": aim, "kept": kept(value, aim)}
                        for what, value, unit, aim in lines], "figures": figures}
    text = json.dumps(result, indent=1)
    print(text)
    if flags.json:
        flags.json.write_text(text + "\n")


def made_and_rows(flags):
    made = made_model.Made(flags.bin, flags.folder / "million", VALUES, TIMES)
    return made, requests.rows_of(made.eval, made_model.EVAL_ROWS)


def measure(flags):
    made, rows = made_and_rows(flags)
    measured = Measured()
    with hdps_server(flags.bin, made.out) as server:
        loads = loads_of(flags.bin, flags.folder, server.host, rows)
        check_answers(loads, server, flags.folder, made.predictions())
        for turn in range(flags.repeats):
            print(f"serving.py: turn {turn + 1} of {flags.repeats}", file=sys.stderr)
            one_turn(flags, made, server, loads, measured)
        measured.add("memory, MiB", server.memory()[0] / 2**20)
    return lines_of(measured), measured.samples


if __name__ == "__main__":
    try:
        main()
    except (KeyboardInterrupt, subprocess.CalledProcessError) as error:
        sys.exit(f"serving.py: error: {error!r}")
