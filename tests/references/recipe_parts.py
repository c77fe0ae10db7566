"""Shared parts of recipes in PyTorch: the wide part, the embeddings, the numbers, an MLP."""

import torch

DIM, FEATURES, NUMERIC = 4, 4, 3
BAGS = (1, 3, 1, 2)
# The recipe makes its own tables: these tell the recording their names and widths.
TABLES = [{"name": "wide", "dim": 1}, {"name": "deep", "dim": DIM}]
WIDE = {"wide_numeric.weight": (NUMERIC, 1), "wide_numeric.bias": (1,), "wide_bias.bias": (1,)}


def model(recipe, wide=True, **settings):
    """The "model" section of a job with that recipe."""
    return {
        "type": recipe,
        "device": "cpu",
        "tables": TABLES if wide else TABLES[1:],
        "embedding_dim": DIM,
        **settings,
    }


def mlp_tensors(width, units):
    """One hidden layer, and the logit."""
    return {
        "deep1.weight": (width, units),
        "deep1.bias": (units,),
        "deep_logit.weight": (units, 1),
        "deep_logit.bias": (1,),
    }


def dense(p, name, x):
    return x @ p.dense[name + ".weight"] + p.dense[name + ".bias"]


def wide(p, batch):
    """[n, 1]"""
    keys = p.all_pooled("wide", batch, range(FEATURES)).sum(1)
    return keys + dense(p, "wide_numeric", batch.numeric) + p.dense["wide_bias.bias"]


def embedding(p, batch):
    """[n, FEATURES, DIM]"""
    return p.all_pooled("deep", batch, range(FEATURES))


def mlp(p, parts):
    """[n, 1] from what lies side by side."""
    x = torch.cat([part.flatten(1) for part in parts], 1)
    return dense(p, "deep_logit", torch.relu(dense(p, "deep1", x)))


def pairs():
    return [(i, j) for i in range(FEATURES) for j in range(i + 1, FEATURES)]
