"""DIN (Zhou et al. 2018, eq. 3): a sequence pooled by its scores against a target; and with softmax.

The sequence of 3 keys at most is cut from up to 5, of which the last ones count.
"""

import torch

import reference

DIM, LENGTH, UNITS = 4, 3, 5


def model(scores):
    return {
        "type": "graph",
        "device": "cpu",
        "tables": [{"name": "t", "dim": DIM}],
        "layers": [
            {"name": "seq", "kind": "sequence", "table": "t", "features": ["C0"], "length": LENGTH},
            {"name": "q", "kind": "embedding", "table": "t", "features": ["C1"]},
            {"name": "din", "kind": "din", "inputs": ["seq", "q"], "units": UNITS,
             "activation": "sigmoid", "scores": scores},
            {"name": "x", "kind": "concat", "inputs": ["din", "q"]},
            {"name": "h", "inputs": ["x"], "units": 8, "activation": "tanh"},
            {"name": "z", "inputs": ["h"], "units": 1},
        ],
    }


TENSORS = {
    "din.weight": (4 * DIM, UNITS),
    "din.bias": (UNITS,),
    "din.score": (UNITS, 1),
    "h.weight": (2 * DIM, 8),
    "h.bias": (8,),
    "z.weight": (8, 1),
    "z.bias": (1,),
}


def interest(p, bag, q, softmax):
    k = p.rows["t"][bag[-LENGTH:]]
    q = q.expand_as(k)
    seen = torch.cat([k, q, k - q, k * q], 1)
    score = torch.sigmoid(seen @ p.dense["din.weight"] + p.dense["din.bias"]) @ p.dense["din.score"]
    score = torch.softmax(score, 0) if softmax else score + p.dense["din.score_bias"]
    return (score * k).sum(0)


def forward_with(softmax):
    def forward(p, batch, training):
        target = p.pooled("t", batch, 1)
        pooled = [interest(p, bag, q, softmax) for bag, q in zip(batch.keys[0], target)]
        x = torch.cat([torch.stack(pooled), target], 1)
        hidden = torch.tanh(x @ p.dense["h.weight"] + p.dense["h.bias"])
        return hidden @ p.dense["z.weight"] + p.dense["z.bias"]

    return forward


plain = {**TENSORS, "din.score_bias": (1,)}
reference.record("din", model("plain"), plain, forward_with(False), numeric=0, bags=(5, 1))
reference.record("din_softmax", model("softmax"), TENSORS, forward_with(True), numeric=0, bags=(5, 1))
