"""DCN-v2's cross layers (Wang et al. 2021, eq. 1) over embeddings and numbers, and a dense layer with relu."""

import torch

import reference

DIM, FEATURES, NUMERIC, LAYERS = 4, 4, 3, 2
WIDTH = DIM * FEATURES + NUMERIC

MODEL = {
    "type": "graph",
    "device": "cpu",
    "tables": [{"name": "t", "dim": DIM}],
    "layers": [
        {"name": "e", "kind": "embedding", "table": "t"},
        {"name": "n", "kind": "numeric"},
        {"name": "x", "kind": "concat", "inputs": ["e", "n"]},
        {"name": "cross", "kind": "cross", "inputs": ["x"], "units": LAYERS},
        {"name": "h", "kind": "dense", "inputs": ["cross"], "units": 8, "activation": "relu"},
        {"name": "z", "kind": "dense", "inputs": ["h"], "units": 1},
    ],
}

TENSORS = {
    **{f"cross.weight{i}": (WIDTH, WIDTH) for i in range(LAYERS)},
    **{f"cross.bias{i}": (WIDTH,) for i in range(LAYERS)},
    "h.weight": (WIDTH, 8),
    "h.bias": (8,),
    "z.weight": (8, 1),
    "z.bias": (1,),
}


def forward(p, batch, training):
    embedded = p.all_pooled("t", batch, range(FEATURES)).reshape(batch.examples, -1)
    x0 = x = torch.cat([embedded, batch.numeric], 1)
    for i in range(LAYERS):
        x = x0 * (x @ p.dense[f"cross.weight{i}"] + p.dense[f"cross.bias{i}"]) + x
    hidden = torch.relu(x @ p.dense["h.weight"] + p.dense["h.bias"])
    return hidden @ p.dense["z.weight"] + p.dense["z.bias"]


reference.record("cross", MODEL, TENSORS, forward, numeric=NUMERIC, bags=(1, 3, 1, 2))
