"""DCN-Mix (Wang et al. 2021, eq. 4): cross layers as mixtures of low-rank experts, beside an MLP."""

import torch

import recipe_parts as parts
import reference

LAYERS, EXPERTS, RANK = 2, 3, 5
WIDTH = parts.FEATURES * parts.DIM + parts.NUMERIC
TENSORS = {}
for layer in range(LAYERS):
    TENSORS[f"cross.down{layer}"] = (WIDTH, EXPERTS * RANK)
    TENSORS[f"cross.core{layer}"] = (EXPERTS * RANK, RANK)
    TENSORS[f"cross.up{layer}"] = (EXPERTS * RANK, WIDTH)
    TENSORS[f"cross.bias{layer}"] = (WIDTH,)
    TENSORS[f"cross.gate{layer}"] = (WIDTH, EXPERTS)
TENSORS.update({"deep1.weight": (WIDTH, 8), "deep1.bias": (8,)})
TENSORS.update({"logit.weight": (WIDTH + 8, 1), "logit.bias": (1,)})


def expert(p, layer, k, x0, x):
    """E_k(x) = x0 * (U g(C g(V^T x)) + b)."""
    columns = slice(k * RANK, (k + 1) * RANK)
    low = torch.tanh(x @ p.dense[f"cross.down{layer}"][:, columns])
    low = torch.tanh(low @ p.dense[f"cross.core{layer}"][columns])
    return x0 * (low @ p.dense[f"cross.up{layer}"][columns] + p.dense[f"cross.bias{layer}"])


def forward(p, batch, training):
    x0 = x = torch.cat([parts.embedding(p, batch).flatten(1), batch.numeric], 1)
    for layer in range(LAYERS):
        gates = torch.softmax(x @ p.dense[f"cross.gate{layer}"], 1)
        x = x + sum(gates[:, k : k + 1] * expert(p, layer, k, x0, x) for k in range(EXPERTS))
    deep = torch.relu(parts.dense(p, "deep1", x0))
    return parts.dense(p, "logit", torch.cat([x, deep], 1))


MODEL = parts.model(
    "dcn_mix", wide=False, hidden=[8], cross_layers=LAYERS, cross_experts=EXPERTS, cross_rank=RANK
)
reference.record("dcn_mix", MODEL, TENSORS, forward, bags=parts.BAGS)
