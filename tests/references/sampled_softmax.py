"""Softmax over the items of a batch, corrected by how often each is in it (Yi et al. 2019, eq. 3 and 4), over two towers."""

import torch

import reference

DIM, UNITS, NUMERIC, TEMPERATURE = 4, 6, 2, 0.5

MODEL = {
    "type": "graph",
    "device": "cpu",
    "loss": "sampled_softmax",
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
        {"name": "both", "kind": "towers", "inputs": ["user", "item"]},
    ],
}

TENSORS = {
    "u.weight": (2 * DIM + NUMERIC, UNITS),
    "u.bias": (UNITS,),
    "v.weight": (DIM, UNITS),
    "v.bias": (UNITS,),
}


def forward(p, batch, training):
    pooled = p.all_pooled("t", batch, (0, 1)).reshape(batch.examples, -1)
    u = torch.cat([pooled, batch.numeric], 1) @ p.dense["u.weight"] + p.dense["u.bias"]
    v = p.pooled("t", batch, 2) @ p.dense["v.weight"] + p.dense["v.bias"]
    u = torch.nn.functional.normalize(u, dim=1) / TEMPERATURE
    v = torch.nn.functional.normalize(v, dim=1)
    return torch.cat([u, v], 1) if training else (u * v).sum(1, keepdim=True)


def sampled_softmax(towers, batch):
    items = [tuple(bag) for bag in batch.keys[2]]
    share = torch.tensor([items.count(item) / batch.examples for item in items])
    logits = towers[:, :UNITS] @ towers[:, UNITS:].T - torch.log(share)
    same = torch.tensor([[a == b for b in items] for a in items])
    elsewhere = same & ~torch.eye(batch.examples, dtype=torch.bool)
    logits = logits.masked_fill(elsewhere, float("-inf"))
    own = torch.arange(batch.examples)
    each = torch.nn.functional.cross_entropy(logits, own, reduction="none")
    return (batch.weights * batch.labels * each).sum()


reference.record(
    "sampled_softmax",
    MODEL,
    TENSORS,
    forward,
    numeric=NUMERIC,
    bags=(1, 3, 1),
    loss=sampled_softmax,
    special=("weight",),
    items=("C2",),
)
