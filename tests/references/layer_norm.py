"""Layer normalization (Ba et al. 2016) of a dense layer with tanh."""

import torch

import reference

DIM, FEATURES, NUMERIC, UNITS = 4, 3, 3, 8
WIDTH = DIM * FEATURES + NUMERIC

MODEL = {
    "type": "graph",
    "device": "cpu",
    "tables": [{"name": "t", "dim": DIM}],
    "layers": [
        {"name": "e", "kind": "embedding", "table": "t"},
        {"name": "n", "kind": "numeric"},
        {"name": "x", "kind": "concat", "inputs": ["e", "n"]},
        {"name": "h", "kind": "dense", "inputs": ["x"], "units": UNITS, "activation": "tanh"},
        {"name": "norm", "kind": "layer_norm", "inputs": ["h"]},
        {"name": "z", "kind": "dense", "inputs": ["norm"], "units": 1},
    ],
}

TENSORS = {
    "h.weight": (WIDTH, UNITS),
    "h.bias": (UNITS,),
    "norm.gain": (UNITS,),
    "norm.bias": (UNITS,),
    "z.weight": (UNITS, 1),
    "z.bias": (1,),
}


def forward(p, batch, training):
    embedded = p.all_pooled("t", batch, range(FEATURES)).reshape(batch.examples, -1)
    x = torch.cat([embedded, batch.numeric], 1)
    hidden = torch.tanh(x @ p.dense["h.weight"] + p.dense["h.bias"])
    normal = torch.nn.functional.layer_norm(hidden, (UNITS,), p.dense["norm.gain"], p.dense["norm.bias"])
    return normal @ p.dense["z.weight"] + p.dense["z.bias"]


reference.record("layer_norm", MODEL, TENSORS, forward, numeric=NUMERIC, bags=(1, 3, 1))
