"""AutoInt's self-attention (Song et al. 2019, eq. 5-8): two layers, of two heads and of one."""

import torch

import reference

DIM, FIELDS = 4, 4
LAYERS = {"a": (DIM, 6, 2), "b": (6, 5, 1)}  # Columns in and out of a vector, heads.

MODEL = {
    "type": "graph",
    "device": "cpu",
    "tables": [{"name": "t", "dim": DIM}],
    "layers": [
        {"name": "e", "kind": "embedding", "table": "t"},
        {"name": "a", "kind": "attention", "inputs": ["e"], "units": 6, "heads": 2},
        {"name": "b", "kind": "attention", "inputs": ["a"], "units": 5, "heads": 1},
        {"name": "z", "inputs": ["b"], "units": 1},
    ],
}

TENSORS = {
    f"{name}.{part}": (before, after)
    for name, (before, after, _) in LAYERS.items()
    for part in ("query", "key", "value", "residual")
}
TENSORS |= {"z.weight": (FIELDS * 5, 1), "z.bias": (1,)}


def attend(p, name, x):
    """x [n, fields, in] to [n, fields, out]"""
    _, units, heads = LAYERS[name]
    parts = {
        part: (x @ p.dense[f"{name}.{part}"]).reshape(*x.shape[:2], heads, units // heads)
        for part in ("query", "key", "value")
    }
    scores = torch.einsum("nfhd,nghd->nhfg", parts["query"], parts["key"])
    found = torch.einsum("nhfg,nghd->nfhd", torch.softmax(scores, 3), parts["value"])
    return torch.relu(found.reshape(*x.shape[:2], units) + x @ p.dense[f"{name}.residual"])


def forward(p, batch, training):
    x = p.all_pooled("t", batch, range(FIELDS))
    for name in LAYERS:
        x = attend(p, name, x)
    return x.reshape(batch.examples, -1) @ p.dense["z.weight"] + p.dense["z.bias"]


reference.record("attention", MODEL, TENSORS, forward, numeric=0, bags=(1, 2, 1, 3))
