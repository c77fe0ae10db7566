#!/usr/bin/env python3
"""Measures rows per second of hdps.Model.predict, in turns with the library alone on the same rows.

PYTHONPATH=build/python benchmarks/python_predict.py [--rows=4096] [--repeats=15]
"""
import argparse
import random
import statistics
import tempfile
import time

import hdps
import numpy

NUMBERS, CATEGORIES, VALUES = 13, 26, 1000


def columns_of(rows, seed):
    """Columns as a product has them: floats, and whole numbers for categories."""
    draw = numpy.random.default_rng(seed)
    return {**{f"I{i}": draw.exponential(100, rows) for i in range(NUMBERS)},
            **{f"C{i}": draw.integers(0, VALUES, rows) for i in range(CATEGORIES)}}


def trained(folder):
    """A model of 13 numbers and 26 categories, dim 16, and layers of 64, 32 and 1."""
    columns = columns_of(4096, seed=1)
    draw = random.Random(1)
    with open(f"{folder}/train.csv", "w") as file:
        for row in zip(*columns.values()):
            file.write(f"{draw.randrange(2)}," + ",".join(map(str, row)) + "\n")
    specs = [{"name": "y", "type": "label"}]
    for name in columns:
        specs.append({"name": name, "type": "numeric", "transform": "log1p"} if name[0] == "I" else {"name": name})
    hdps.train({"name": "scored", "data": {"train": [f"{folder}/train.csv"], "columns": specs},
                "model": {"type": "wide_deep", "embedding_dim": 16, "hidden": [64, 32], "device": "cpu"},
                "train": {"batch_size": 1024, "epochs": 2}}, f"{folder}/run", quiet=True)
    return hdps.Model.open(f"{folder}/run")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--repeats", type=int, default=15)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = trained(folder)
        rows = columns_of(asked.rows, seed=2)
        ratios, seconds = [], []
        for _ in range(asked.repeats + 1):
            alone = hdps._hdps.seconds_of_scoring(model, rows, 1)[0]
            began = time.perf_counter()
            model.predict(rows)
            seconds.append(time.perf_counter() - began)
            ratios.append(alone / seconds[-1])
        del ratios[0], seconds[0]  # The first ones wake threads and memory.
        print(f"predict of {asked.rows} rows: {asked.rows / statistics.median(seconds):.0f} rows/s, "
              f"{statistics.median(ratios):.3f} of the library's own")


if __name__ == "__main__":
    main()
