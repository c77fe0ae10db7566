"""Blocks of a transformer over a sequence: those of BST (Chen et al. 2019) with the target behind the history, and
those of SASRec (Kang and McAuley 2018). The sequence of 3 keys at most is cut from up to 5, of which the last count.
"""

import torch
from torch.nn import functional

import reference

DIM, LENGTH, UNITS, HEADS = 4, 3, 5, 2


def model(target, **block):
    history = ["seq", "q"] if target else ["seq"]
    blocks = [
        {"name": name, "kind": "transformer", "inputs": [below], "units": UNITS, "heads": HEADS, **block}
        for name, below in (("a", "at"), ("b", "a"))
    ]
    return {
        "type": "graph",
        "device": "cpu",
        "tables": [{"name": "t", "dim": DIM}],
        "layers": [
            {"name": "seq", "kind": "sequence", "table": "t", "features": ["C0"], "length": LENGTH},
            {"name": "q", "kind": "embedding", "table": "t", "features": ["C1"]},
            {"name": "at", "kind": "positions", "inputs": history},
            *blocks,
            {"name": "last", "kind": "last_vector", "inputs": ["b"]},
            {"name": "user", "kind": "layer_norm", "inputs": ["last"]},
            {"name": "product", "kind": "inner", "inputs": ["user", "q"]},
            {"name": "z", "kind": "bias", "inputs": ["product"]},
        ],
    }


def tensors(vectors):
    found = {"at.weight": (vectors, DIM)}
    for name in "ab":
        found |= {f"{name}.{part}": (DIM, DIM) for part in ("query", "key", "value", "output")}
        found |= {f"{name}.hidden_weight": (DIM, UNITS), f"{name}.weight": (UNITS, DIM)}
        found |= {f"{name}.hidden_bias": (UNITS,), f"{name}.bias": (DIM,)}
        found |= {f"{name}.{part}": (DIM,) for part in
                  ("attention_gain", "attention_shift", "mlp_gain", "mlp_shift")}
    return found | {"user.gain": (DIM,), "user.bias": (DIM,), "z.bias": (1,)}


def block_of(p, name, x, before, earlier, activation):
    """One example: x [vectors, dim], none of them padding."""
    of = lambda part: p.dense[f"{name}.{part}"]

    def norm(part, values):
        return functional.layer_norm(values, (DIM,), of(f"{part}_gain"), of(f"{part}_shift"), 1e-5)

    def attend(values):
        heads = [(values @ of(part)).reshape(-1, HEADS, DIM // HEADS).transpose(0, 1)
                 for part in ("query", "key", "value")]
        seen = functional.scaled_dot_product_attention(*heads, is_causal=earlier)
        return seen.transpose(0, 1).reshape(-1, DIM) @ of("output")

    def mlp(values):
        return activation(values @ of("hidden_weight") + of("hidden_bias")) @ of("weight") + of("bias")

    if before:
        x = x + attend(norm("attention", x))
        return x + mlp(norm("mlp", x))
    x = norm("attention", x + attend(x))
    return norm("mlp", x + mlp(x))


def forward_with(target, before, earlier, activation):
    def forward(p, batch, training):
        targets = p.pooled("t", batch, 1)
        lasts = []
        for bag, q in zip(batch.keys[0], targets):
            x = p.rows["t"][bag[-LENGTH:]]
            if target:
                x = torch.cat([x, q[None]])
            x = x + p.dense["at.weight"][-len(x):]
            for name in "ab":
                x = block_of(p, name, x, before, earlier, activation)
            lasts.append(x[-1])
        user = functional.layer_norm(torch.stack(lasts), (DIM,), p.dense["user.gain"], p.dense["user.bias"], 1e-5)
        return ((user * targets).sum(1) + p.dense["z.bias"])[:, None]

    return forward


leaky = lambda x: functional.leaky_relu(x, 0.01)
reference.record("transformer_bst", model(True, activation="leaky_relu"), tensors(LENGTH + 1),
                 forward_with(True, False, False, leaky), numeric=0, bags=(5, 1))
reference.record("transformer_sasrec", model(False, activation="relu", norm="before", sees="earlier"),
                 tensors(LENGTH), forward_with(False, True, True, torch.relu), numeric=0, bags=(5, 1))
