"""PNN with inner and outer products (Qu et al. 2016); outer products are added over all pairs (eq. 12)."""

import torch

import recipe_parts as parts
import reference

WIDTH = parts.FEATURES * parts.DIM + len(parts.pairs()) + parts.DIM**2 + parts.NUMERIC
TENSORS = {
    "deep1.weight": (WIDTH, 8),
    "deep1.bias": (8,),
    "logit.weight": (8, 1),
    "logit.bias": (1,),
}


def forward(p, batch, training):
    v = parts.embedding(p, batch)
    everyone = range(parts.FEATURES)
    # In the order of the layer dot: by the later of the two.
    inner = torch.stack([(v[:, i] * v[:, j]).sum(1) for i in everyone for j in range(i)], 1)
    outer = sum(v[:, i, :, None] * v[:, j, None, :] for i in everyone for j in everyone)
    x = torch.cat([part.flatten(1) for part in (v, inner, outer, batch.numeric)], 1)
    return parts.dense(p, "logit", torch.relu(parts.dense(p, "deep1", x)))


reference.record(
    "pnn",
    parts.model("pnn", wide=False, hidden=[8], products="both"),
    TENSORS,
    forward,
    bags=parts.BAGS,
)
