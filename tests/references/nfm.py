"""NFM: bi-interaction pooling (He and Chua 2017, eq. 3), pair by pair, under an MLP."""

import recipe_parts as parts
import reference

TENSORS = {**parts.WIDE, **parts.mlp_tensors(parts.DIM + parts.NUMERIC, 8)}


def forward(p, batch, training):
    v = parts.embedding(p, batch)
    pooled = sum(v[:, i] * v[:, j] for i, j in parts.pairs())
    return parts.wide(p, batch) + parts.mlp(p, [pooled, batch.numeric])


reference.record("nfm", parts.model("nfm", hidden=[8]), TENSORS, forward, bags=parts.BAGS)
