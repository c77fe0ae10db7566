#!/usr/bin/env python3
"""Defines the cases that hdps and a peer both train: shapes, data from a fixed seed, job files.

  benchmarks/peers/cases.py NAME FOLDER     makes the data of a case; needs numpy
"""
import dataclasses
import json
import os
import sys

VOCABULARY = 100_000
SEED = 7
# Standard deviation of the planted score: PyTorch ends at the AUC it had on the set of the first
# comparison, 0.6884, within the spread of its seeds.
SIGNAL = 1.52
# Adagrad's in both systems, for rows and for dense layers. Gradients are means over a batch, so a
# row's squares are of about 1e-6: an accumulator that begins far above would all but freeze it.
TABLE_RATE, DENSE_RATE, ACCUMULATOR = 0.05, 0.02, 1e-8

BF16_GOAL = 1.2  # The same over the tuned peer with bf16 products, in each case.


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    numbers: int  # Numeric columns.
    keys: int  # Categorical columns, one key each.
    dim: int
    hidden: tuple
    batch: int
    steps: int
    wide: bool = True  # One weight a key and a number beside the MLP.
    eval_rows: int = 0
    vocabulary: int = VOCABULARY  # Values of each categorical column.
    on_gpu: bool = False  # Takes a CPU minutes: only with --device=cuda.
    goal: float = 0  # One server and one worker over the best peer, fp32 and rows there in both.
    # The same of PyTorch over hdps' rows: in one process, and with one server and one worker.
    rows_goals: tuple = (0, 0)
    # The recipe of hdps and its settings; none: Wide&Deep, or an MLP over embeddings without `wide`.
    model: dict = None
    history: int = 0  # Most keys of a history, whose items are values of the first categorical column.

    @property
    def rows(self):
        return self.batch * self.steps


CASES = [
    Case("large_dim16", 13, 26, 16, (1024, 512, 256, 128), 4096, 20, goal=1.2),
    Case("large_dim80", 0, 39, 80, (1024, 512, 256, 128), 4096, 8, goal=1.5),
    Case("small", 13, 26, 16, (64, 32), 4096, 60, goal=1.6, rows_goals=(0.9, 0.8)),
    # 100,000 rows in steps of 1024, and AUC on 20,000 others after one epoch.
    # 39 fields and 200,000 rows.
    Case("ref_l", 0, 39, 80, (1024, 512, 256, 128), 16_000, 24, vocabulary=5128, on_gpu=True),
    Case("peers", 0, 26, 16, (256, 128, 64), 1024, 98, wide=False, eval_rows=20_000, goal=1.5,
         rows_goals=(1.0, 0.9)),
]


def model_case(kind, wide=False, keys=26, history=0, **settings):
    """Returns the case of a recipe, named like it, in steps so small that an epoch takes seconds."""
    return Case(kind, 13, keys, 16, (256, 128), 2048, 24, wide=wide, eval_rows=8192, goal=1.0,
                model={"type": kind, **settings}, history=history)


# Models beyond Wide&Deep, with their settings spelled out: compare_models.py.
MODELS = [
    model_case("autoint", attention_layers=3, attention_heads=2, attention_units=16),
    model_case("xdeepfm", wide=True, cin_maps=32, cin_levels=2, cin_split="half"),
    model_case("fibinet", wide=True, bilinear="each", senet_reduction=3),
    model_case("dcn_v2", cross_layers=3),
    model_case("dcn_mix", cross_layers=3, cross_experts=4, cross_rank=32),
    model_case("din", keys=6, history=30, attention_hidden=36, attention_scores="plain"),
]


def case_of(name):
    return next(case for case in CASES + MODELS if case.name == name)


def histories(random, rows, case):
    """Draws from none to case.history items an example [rows, history], with -1 behind the last."""
    import numpy

    items = numpy.floor(case.vocabulary ** random.rand(rows, case.history)).astype(numpy.int64) - 1
    lengths = random.randint(case.history + 1, size=(rows, 1))
    return numpy.where(numpy.arange(case.history) < lengths, items, -1)


def make_data(case, folder):
    """Writes train and eval files for hdps and the same rows as arrays; needs numpy.

    Keys are log-uniform over the vocabulary, numbers counts; labels are drawn by a planted teacher
    with one weight a key.
    """
    import numpy

    if os.path.exists(os.path.join(folder, "eval.npz")):
        return
    os.makedirs(folder, exist_ok=True)
    random = numpy.random.RandomState(SEED)
    teacher = random.normal(size=(case.keys, case.vocabulary)).astype(numpy.float32)
    for name, rows in (("train", case.rows), ("eval", case.eval_rows)):
        ids = numpy.floor(case.vocabulary ** random.rand(rows, case.keys)).astype(numpy.int64) - 1
        numbers = numpy.floor(numpy.exp(1.5 * random.normal(size=(rows, case.numbers)) + 1))
        score = SIGNAL * sum(teacher[f, ids[:, f]] for f in range(case.keys)) / case.keys**0.5
        more = {}
        if case.history:
            more["history"] = history = histories(random, rows, case)
            score += SIGNAL * ((history >= 0) * teacher[0, history]).sum(axis=1) / case.history**0.5
        labels = (random.rand(rows) < 1 / (1 + numpy.exp(1 - score))).astype(numpy.int64)
        with open(os.path.join(folder, name + ".tsv"), "w", encoding="ascii") as text:
            for i in range(rows):
                cells = [str(labels[i])]
                cells += ["%d" % number for number in numbers[i]]
                if case.history:
                    cells.append("|".join("%x" % item for item in history[i] if item >= 0))
                cells += ["%x" % key for key in ids[i]]
                text.write("\t".join(cells) + "\n")
        numpy.savez(os.path.join(folder, name + ".npz"), ids=ids, labels=labels,
                    numbers=numpy.log1p(numbers).astype(numpy.float32), **more)


def optimizer_of(rate):
    return {"kind": "adagrad", "learning_rate": rate, "initial_accumulator": ACCUMULATOR}


def tables_job(case):
    """Returns the job of the case's tables alone, for a model in PyTorch."""
    tables = [{"name": "deep", "dim": case.dim, "optimizer": optimizer_of(TABLE_RATE),
               "init": {"kind": "normal", "scale": 0.01}}]
    if case.wide:
        tables.append({"name": "wide", "dim": 1, "optimizer": optimizer_of(TABLE_RATE),
                       "init": {"kind": "zeros"}})
    return {"name": case.name, "model": {"type": "tables", "tables": tables}}


def write_tables_job(case, folder):
    """Writes the same as a file, and returns its path."""
    path = os.path.join(folder, "tables.json")
    with open(path, "w", encoding="ascii") as text:
        json.dump(tables_job(case), text, indent=2)
    return path


def model_job(case):
    """Returns the model of the job: its recipe or layers, sizes and optimizers."""
    rows, dense = optimizer_of(TABLE_RATE), optimizer_of(DENSE_RATE)
    sizes = {"embedding_dim": case.dim, "hidden": list(case.hidden), "deep_optimizer": rows,
             "dense_optimizer": dense}
    if case.model:
        wide = {"wide_optimizer": rows} if case.wide else {}
        history = {"history": "H", "target": "T", "history_length": case.history} if case.history else {}
        return {**case.model, **sizes, **wide, **history}
    if case.wide:
        return {"type": "wide_deep", **sizes, "wide_optimizer": rows}
    layers = [{"name": "embedding", "kind": "embedding", "table": "ids"}]
    for i, units in enumerate(case.hidden):
        layers.append({"name": "h%d" % i, "inputs": [layers[-1]["name"]], "units": units,
                       "activation": "relu"})
    layers.append({"name": "logit", "inputs": [layers[-1]["name"]], "units": 1})
    return {"type": "graph", "dense_optimizer": dense, "layers": layers,
            "tables": [{"name": "ids", "dim": case.dim, "optimizer": rows}]}


def write_job(case, folder, device="cpu"):
    """Writes the job file for hdps, and returns its path."""
    columns = [{"name": "label", "type": "label"}]
    if case.numbers:
        columns.append({"name": "I", "type": "numeric", "transform": "log1p",
                        "repeat": case.numbers})
    if case.history:
        columns += [{"name": "H", "type": "multi", "vocabulary": "T"}, {"name": "T"}]
    columns.append({"name": "C", "type": "categorical", "repeat": case.keys - bool(case.history)})
    job = {
        "name": case.name,
        "data": {"format": "csv", "delimiter": "\t", "columns": columns,
                 "train": [os.path.join(folder, "train.tsv")],
                 "eval": [os.path.join(folder, "eval.tsv")] if case.eval_rows else []},
        "model": {**model_job(case), "device": device},
        "train": {"batch_size": case.batch, "epochs": 2},
        "parallel": {"gradients_mean": True},
    }
    path = os.path.join(folder, "job.json")
    with open(path, "w", encoding="ascii") as text:
        json.dump(job, text, indent=2)
    return path


if __name__ == "__main__":
    make_data(case_of(sys.argv[1]), sys.argv[2])
