"""Two towers (Huang et al. 2013, Yi et al. 2019): the cosine over a temperature, and a bias."""

import torch

import reference

DIM, UNITS, NUMERIC, TEMPERATURE = 4, 6, 2, 0.25

MODEL = {
    "type": "graph",
    "device": "cpu",
    "tables": [{"name": "t", "dim": DIM}],
    "layers": [
        {"name": "eu", "kind": "embedding", "table": "t", "features": ["C0", "C1"]},
        {"name": "n", "kind": "numeric"},
        {"name": "xu", "kind": "concat", "inputs": ["eu", "n"]},
        {"name": "ei", "kind": "embedding", "table": "t", "features": ["C2"]},
        {"name": "u", "inputs": ["xu"], "units": UNITS},
        {"name": "v", "inputs": ["ei"], "units": UNITS},
        {"name": "user", "kind": "normalize", "inputs": ["u"], "temperature": TEMPERATURE},
        {"name": "item", "kind": "normalize", "inputs": ["v"]},
        {"name": "cosine", "kind": "inner", "inputs": ["user", "item"]},
        {"name": "z", "kind": "bias", "inputs": ["cosine"]},
    ],
}

TENSORS = {
    "u.weight": (2 * DIM + NUMERIC, UNITS),
    "u.bias": (UNITS,),
    "v.weight": (DIM, UNITS),
    "v.bias": (UNITS,),
    "z.bias": (1,),
}


def forward(p, batch, training):
    pooled = p.all_pooled("t", batch, (0, 1)).reshape(batch.examples, -1)
    u = torch.cat([pooled, batch.numeric], 1) @ p.dense["u.weight"] + p.dense["u.bias"]
    v = p.pooled("t", batch, 2) @ p.dense["v.weight"] + p.dense["v.bias"]
    cosine = torch.nn.functional.cosine_similarity(u, v, 1)
    return (cosine / TEMPERATURE + p.dense["z.bias"])[:, None]


reference.record("two_tower", MODEL, TENSORS, forward, numeric=NUMERIC, bags=(1, 3, 2))
