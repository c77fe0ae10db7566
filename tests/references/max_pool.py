"""Embeddings pooled by the maximum of each column, side by side and added, below a dense layer."""

import torch

import reference

DIM, FEATURES = 4, 3

MODEL = {
    "type": "graph",
    "device": "cpu",
    "tables": [{"name": "t", "dim": DIM}],
    "layers": [
        {"name": "e", "kind": "embedding", "table": "t", "pooling": "max"},
        {"name": "s", "kind": "embedding", "table": "t", "pooling": "max", "combine": "sum"},
        {"name": "x", "kind": "concat", "inputs": ["e", "s"]},
        {"name": "h", "inputs": ["x"], "units": 8, "activation": "tanh"},
        {"name": "z", "inputs": ["h"], "units": 1},
    ],
}

TENSORS = {"h.weight": (DIM * (FEATURES + 1), 8), "h.bias": (8,), "z.weight": (8, 1), "z.bias": (1,)}


def forward(p, batch, training):
    pooled = p.all_pooled("t", batch, range(FEATURES), "max")
    x = torch.cat([pooled.reshape(batch.examples, -1), pooled.sum(1)], 1)
    hidden = torch.tanh(x @ p.dense["h.weight"] + p.dense["h.bias"])
    return hidden @ p.dense["z.weight"] + p.dense["z.bias"]


reference.record("max_pool", MODEL, TENSORS, forward, numeric=0, bags=(3, 4, 1))
