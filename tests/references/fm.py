"""A factorization machine (Rendle 2010, eq. 1), pair by pair."""

import recipe_parts as parts
import reference


def forward(p, batch, training):
    v = parts.embedding(p, batch)
    dots = sum((v[:, i] * v[:, j]).sum(1, keepdim=True) for i, j in parts.pairs())
    return parts.wide(p, batch) + dots


reference.record("fm", parts.model("fm"), parts.WIDE, forward, bags=parts.BAGS)
