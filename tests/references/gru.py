"""DIEN (Zhou et al. 2019): a GRU with the loss of the next item, and an AUGRU with a target above it.

The sequence of 3 keys at most is cut from up to 5, of which the last ones count.
"""

import torch
from torch.nn import functional

import reference

DIM, LENGTH, UNITS, LOSS_WEIGHT = 4, 3, 5, 0.5

MODEL = {
    "type": "graph",
    "device": "cpu",
    "tables": [{"name": "t", "dim": DIM}],
    "layers": [
        {"name": "seq", "kind": "sequence", "table": "t", "features": ["C0"], "length": LENGTH},
        {"name": "q", "kind": "embedding", "table": "t", "features": ["C1"]},
        {"name": "a", "kind": "gru", "inputs": ["seq"], "units": DIM},
        {"name": "next", "kind": "next_item", "inputs": ["a", "seq"], "loss_weight": LOSS_WEIGHT},
        {"name": "b", "kind": "gru", "inputs": ["next", "q"], "units": UNITS},
        {"name": "last", "kind": "last_vector", "inputs": ["b"]},
        {"name": "x", "kind": "concat", "inputs": ["last", "q"]},
        {"name": "z", "inputs": ["x"], "units": 1},
    ],
}

TENSORS = {
    "a.input": (DIM, 3 * DIM),
    "a.state": (DIM, 3 * DIM),
    "a.bias": (3 * DIM,),
    "b.input": (DIM, 3 * UNITS),
    "b.state": (UNITS, 3 * UNITS),
    "b.bias": (3 * UNITS,),
    "b.attention": (DIM, DIM),
    "z.weight": (UNITS + DIM, 1),
    "z.bias": (1,),
}


def states_of(p, name, x, shares):
    """One example: the states behind each of its vectors x [vectors, dim]; shares: one of each update gate."""
    h, states = torch.zeros(p.dense[f"{name}.state"].shape[0]), []
    for vector, share in zip(x, shares):
        of_x = (vector @ p.dense[f"{name}.input"] + p.dense[f"{name}.bias"]).chunk(3)
        of_h = (h @ p.dense[f"{name}.state"]).chunk(3)
        u = share * torch.sigmoid(of_x[0] + of_h[0])
        r = torch.sigmoid(of_x[1] + of_h[1])
        c = torch.tanh(of_x[2] + r * of_h[2])
        h = (1 - u) * h + u * c
        states.append(h)
    return torch.stack(states)


def items_of(p, batch):
    return [p.rows["t"][bag[-LENGTH:]] for bag in batch.keys[0]]


def forward(p, batch, training):
    targets, lasts = p.pooled("t", batch, 1), []
    for x, q in zip(items_of(p, batch), targets):
        interests = states_of(p, "a", x, torch.ones(len(x)))
        shares = torch.softmax(interests @ p.dense["b.attention"] @ q, 0)
        lasts.append(states_of(p, "b", interests, shares)[-1])
    return torch.cat([torch.stack(lasts), targets], 1) @ p.dense["z.weight"] + p.dense["z.bias"]


def next_items(p, batch):
    """The wrong items are those of the next example."""
    items = items_of(p, batch)
    total = torch.zeros(())
    for i, x in enumerate(items):
        states, others = states_of(p, "a", x, torch.ones(len(x))), items[(i + 1) % len(items)]
        for t in range(len(x) - 1):
            total = total - functional.logsigmoid(states[t] @ x[t + 1])
            if t + 1 < len(others):
                total = total - functional.logsigmoid(-(states[t] @ others[t + 1]))
    return LOSS_WEIGHT * total


reference.record("gru", MODEL, TENSORS, forward, numeric=0, bags=(5, 1), added=next_items)
