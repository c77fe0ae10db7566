"""FiBiNET (Huang et al. 2019): SENET (eq. 3-5) and bilinear products (eq. 6-8) with each kind of matrices."""

import torch

import recipe_parts as parts
import reference

REDUCED = 2


def bilinear(p, name, v, matrices):
    """[n, pairs, DIM]"""
    side_by_side = p.dense[name + ".weight"].split(parts.DIM, 1)
    out = []
    for n, (i, j) in enumerate(parts.pairs()):
        weight = side_by_side[{"all": 0, "each": i, "interaction": n}[matrices]]
        out.append((v[:, i] @ weight) * v[:, j])
    return torch.stack(out, 1)


def record(name, matrices):
    count = {"all": 1, "each": parts.FEATURES - 1, "interaction": len(parts.pairs())}[matrices]
    width = 2 * len(parts.pairs()) * parts.DIM + parts.NUMERIC
    tensors = {
        **parts.WIDE,
        "pairs.weight": (parts.DIM, count * parts.DIM),
        "senet_pairs.weight": (parts.DIM, count * parts.DIM),
        "senet_hidden.weight": (parts.FEATURES, REDUCED),
        "senet_hidden.bias": (REDUCED,),
        "senet_factors.weight": (REDUCED, parts.FEATURES),
        "senet_factors.bias": (parts.FEATURES,),
        **parts.mlp_tensors(width, 8),
    }

    def forward(p, batch, training):
        v = parts.embedding(p, batch)
        hidden = torch.relu(parts.dense(p, "senet_hidden", v.mean(2)))
        factors = torch.relu(parts.dense(p, "senet_factors", hidden))
        weighted = v * factors[:, :, None]
        products = [bilinear(p, "pairs", v, matrices), bilinear(p, "senet_pairs", weighted, matrices)]
        return parts.wide(p, batch) + parts.mlp(p, [*products, batch.numeric])

    model = parts.model("fibinet", hidden=[8], bilinear=matrices, senet_reduction=2)
    reference.record(name, model, tensors, forward, bags=parts.BAGS)


record("fibinet", "each")
record("fibinet_all", "all")
record("fibinet_interaction", "interaction")
