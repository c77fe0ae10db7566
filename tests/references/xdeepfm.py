"""xDeepFM: CIN (Lian et al. 2018, eq. 6-8) with and without halved levels, beside an MLP."""

import torch

import recipe_parts as parts
import reference

MAPS, LEVELS = 6, 3


def cin(p, v, half):
    """[n, maps that come out]; v [n, FEATURES, DIM] is X^0."""
    before, out = v, []
    for level in range(LEVELS):
        products = torch.einsum("nhd,nfd->nhfd", before, v).flatten(1, 2)
        maps = torch.einsum("npd,pm->nmd", products, p.dense[f"cin.weight{level}"])
        last = level + 1 == LEVELS
        before, comes_out = (maps[:, : MAPS // 2], maps[:, MAPS // 2 :]) if half else (maps, maps)
        out.append((maps if last else comes_out).sum(2))
    return torch.cat(out, 1)


def record(name, split):
    half = split == "half"
    onward = MAPS // 2 if half else MAPS
    inputs = [parts.FEATURES] + [onward] * (LEVELS - 1)
    tensors = {
        **parts.WIDE,
        **{f"cin.weight{i}": (h * parts.FEATURES, MAPS) for i, h in enumerate(inputs)},
        "cin_logit.weight": ((LEVELS - 1) * onward + MAPS, 1),
        "cin_logit.bias": (1,),
        **parts.mlp_tensors(parts.FEATURES * parts.DIM + parts.NUMERIC, 8),
    }

    def forward(p, batch, training):
        v = parts.embedding(p, batch)
        products = parts.dense(p, "cin_logit", cin(p, v, half))
        return parts.wide(p, batch) + products + parts.mlp(p, [v, batch.numeric])

    model = parts.model("xdeepfm", hidden=[8], cin_maps=MAPS, cin_levels=LEVELS, cin_split=split)
    reference.record(name, model, tensors, forward, bags=parts.BAGS)


record("xdeepfm", "half")
record("xdeepfm_whole", "none")
