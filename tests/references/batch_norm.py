"""Batch normalization (Ioffe and Szegedy 2015) of numbers, and of a product before its relu."""

import torch

import reference

DIM, FEATURES, NUMERIC, UNITS = 4, 3, 3, 8
WIDTH = DIM * FEATURES + NUMERIC
# What moves in a step: the driver changes all tensors by plain SGD, and so running statistics too.
MOVES = reference.LEARNING_RATE

MODEL = {
    "type": "graph",
    "device": "cpu",
    "tables": [{"name": "t", "dim": DIM}],
    "layers": [
        {"name": "e", "kind": "embedding", "table": "t"},
        {"name": "n", "kind": "numeric"},
        {"name": "norm0", "kind": "batch_norm", "inputs": ["n"], "momentum": 1 - MOVES},
        {"name": "x", "kind": "concat", "inputs": ["e", "norm0"]},
        {"name": "h", "kind": "dense", "inputs": ["x"], "units": UNITS},
        {"name": "norm1", "kind": "batch_norm", "inputs": ["h"], "momentum": 1 - MOVES, "epsilon": 0.001},
        {"name": "act", "kind": "activation", "inputs": ["norm1"], "activation": "relu"},
        {"name": "z", "kind": "dense", "inputs": ["act"], "units": 1},
    ],
}


def norm_tensors(name, width):
    return {f"{name}.{part}": (width,) for part in ("gain", "bias", "running_mean", "running_variance")}


TENSORS = {
    **norm_tensors("norm0", NUMERIC),
    "h.weight": (WIDTH, UNITS),
    "h.bias": (UNITS,),
    **norm_tensors("norm1", UNITS),
    "z.weight": (UNITS, 1),
    "z.bias": (1,),
}


def normalized(p, name, x, training, epsilon):
    # PyTorch changes the running statistics itself; detached they share their memory.
    mean = p.dense[f"{name}.running_mean"].detach()
    variance = p.dense[f"{name}.running_variance"].detach()
    gain, bias = p.dense[f"{name}.gain"], p.dense[f"{name}.bias"]
    return torch.nn.functional.batch_norm(x, mean, variance, gain, bias, training, MOVES, epsilon)


def forward(p, batch, training):
    embedded = p.all_pooled("t", batch, range(FEATURES)).reshape(batch.examples, -1)
    numbers = normalized(p, "norm0", batch.numeric, training, 1e-5)
    product = torch.cat([embedded, numbers], 1) @ p.dense["h.weight"] + p.dense["h.bias"]
    hidden = torch.relu(normalized(p, "norm1", product, training, 1e-3))
    return hidden @ p.dense["z.weight"] + p.dense["z.bias"]


reference.record("batch_norm", MODEL, TENSORS, forward, numeric=NUMERIC, bags=(1, 3, 1))
