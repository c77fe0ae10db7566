"""MMoE's mixture of experts by a gate (Ma et al. 2018, eq. 6-7), and ESMM's joint logit of two towers."""

import torch

import reference

DIM, FEATURES, NUMERIC, EXPERTS, UNITS = 4, 3, 2, 3, 5
WIDTH = DIM * FEATURES + NUMERIC

MODEL = {
    "type": "graph",
    "device": "cpu",
    "tables": [{"name": "t", "dim": DIM}],
    "layers": [
        {"name": "e", "kind": "embedding", "table": "t"},
        {"name": "n", "kind": "numeric"},
        {"name": "x", "kind": "concat", "inputs": ["e", "n"]},
        {"name": "experts", "inputs": ["x"], "units": EXPERTS * UNITS, "activation": "tanh"},
        {"name": "gate", "inputs": ["x"], "units": EXPERTS},
        {"name": "mix", "kind": "mixture", "inputs": ["experts", "gate"]},
        {"name": "a", "inputs": ["mix"], "units": 1},
        {"name": "b", "inputs": ["x"], "units": 1},
        {"name": "z", "kind": "joint", "inputs": ["a", "b"]},
    ],
}

TENSORS = {
    "experts.weight": (WIDTH, EXPERTS * UNITS),
    "experts.bias": (EXPERTS * UNITS,),
    "gate.weight": (WIDTH, EXPERTS),
    "gate.bias": (EXPERTS,),
    "a.weight": (UNITS, 1),
    "a.bias": (1,),
    "b.weight": (WIDTH, 1),
    "b.bias": (1,),
}


def forward(p, batch, training):
    d = p.dense
    embedded = p.all_pooled("t", batch, range(FEATURES)).reshape(batch.examples, -1)
    x = torch.cat([embedded, batch.numeric], 1)
    experts = torch.tanh(x @ d["experts.weight"] + d["experts.bias"])
    shares = torch.softmax(x @ d["gate.weight"] + d["gate.bias"], 1)
    mixed = (experts.reshape(-1, EXPERTS, UNITS) * shares[:, :, None]).sum(1)
    a = mixed @ d["a.weight"] + d["a.bias"]
    b = x @ d["b.weight"] + d["b.bias"]
    both = (torch.sigmoid(a) * torch.sigmoid(b)).double()
    return torch.log(both / (1 - both)).float()


reference.record("mixture", MODEL, TENSORS, forward, numeric=NUMERIC, bags=(1, 2, 1))
