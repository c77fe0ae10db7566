"""Embedding and EmbeddingBag, with the calls of torch's own."""
from typing import Any, NamedTuple, Optional

import torch
from torch.nn import functional

from hdps.torch.rows import TableModule, keys_of, takes_sparse

MODES = ("sum", "mean", "max")


def check_mode(mode: str, weighted: bool = False) -> None:
    """Raises ValueError for a mode that is not there or takes no weights, as torch does."""
    if mode not in MODES:
        raise ValueError(f"mode: {mode!r}: expected one of {', '.join(map(repr, MODES))}")
    if weighted and mode != "sum":
        raise ValueError(f"weights of keys need mode 'sum', and this is {mode!r}")


class Bags(NamedTuple):
    """Keys [n] of bags that begin at offsets [B] (or [B + 1], the last of which is n)."""

    keys: torch.Tensor
    offsets: torch.Tensor
    weights: Optional[torch.Tensor]  # [n], on the device of whoever gave them.

    def without(self, padding: int) -> "Bags":
        """Returns the bags without the keys that are `padding`."""
        kept = self.keys != padding
        before = functional.pad(kept.cumsum(0), (1, 0))  # [n + 1]: kept keys before each place.
        weights = self.weights
        if weights is not None:
            weights = weights[kept.to(weights.device)]
        return Bags(self.keys[kept], before[self.offsets], weights)


def pooled(weight: torch.Tensor, positions: torch.Tensor, bags: Bags, mode: str,
           include_last_offset: bool = False) -> torch.Tensor:
    """Returns the rows of each bag as one: [B, dim]."""
    weights = bags.weights
    if weights is not None:
        weights = weights.to(weight)
    result: torch.Tensor = functional.embedding_bag(
        positions, weight, bags.offsets.to(weight.device), mode=mode,
        sparse=mode != "max" and takes_sparse(weight), per_sample_weights=weights,
        include_last_offset=include_last_offset)
    return result


class EmbeddingBag(TableModule):
    """torch.nn.EmbeddingBag over a table of the job: the servers keep and train its rows.

    worker: what hdps.join or hdps.local returned.
    table: a name of the job's tables, which says the dim and the optimizer.
    mode: how the rows of a bag become one: "sum", "mean" or "max".
    include_last_offset: the last of `offsets` is the number of keys, and begins no bag.
    padding_idx: a key that counts as if it were not there. It needs no row.

    Any int64 is a key: there is no num_embeddings. forward() pulls the distinct keys' rows, and
    backward() pushes their gradients. The loss must be a mean over the examples of this worker.
    """

    def __init__(self, worker: Any, table: str, mode: str = "sum", *,
                 include_last_offset: bool = False, padding_idx: Optional[int] = None) -> None:
        super().__init__(worker, [table])
        check_mode(mode)
        self.table, self.mode = table, mode
        self.include_last_offset, self.padding_idx = include_last_offset, padding_idx
        self.embedding_dim = worker.tables[table]

    def forward(self, input: torch.Tensor, offsets: Optional[torch.Tensor] = None,
                per_sample_weights: Optional[torch.Tensor] = None) -> torch.Tensor:
        """Returns [B, dim] for keys [B, n], or for keys [n] of bags that begin at offsets [B].

        Raises TypeError for keys of another type than int64, and ValueError for shapes that cannot
        be.
        """
        bags = self._bags(input, offsets, per_sample_weights)
        examples = len(bags.offsets) - int(self.include_last_offset and offsets is not None)
        weight, positions = self.rows({self.table: bags.keys}, examples)[self.table]
        return pooled(weight, positions, bags, self.mode,
                      self.include_last_offset and offsets is not None)

    def prefetch(self, input: torch.Tensor, offsets: Optional[torch.Tensor] = None,
                 per_sample_weights: Optional[torch.Tensor] = None) -> None:
        """Asks ahead for the rows that forward() pulls for the same arguments in the next step."""
        bags = self._bags(input, offsets, per_sample_weights)
        self.worker.prefetch({self.table: bags.keys})

    def extra_repr(self) -> str:
        return f"{self.table!r}, dim={self.embedding_dim}, mode={self.mode!r}"

    def _bags(self, input: torch.Tensor, offsets: Optional[torch.Tensor],
              weights: Optional[torch.Tensor]) -> Bags:
        keys = keys_of("input", input)
        if weights is not None:
            check_mode(self.mode, weighted=True)
            if weights.shape != input.shape:
                raise ValueError(f"per_sample_weights has shape {tuple(weights.shape)}: expected "
                                 f"that of input, {tuple(input.shape)}")
            weights = weights.reshape(-1)
        if input.dim() == 2:
            if offsets is not None:
                raise ValueError("offsets: expected None, for each row of a 2-D input is a bag")
            offsets = torch.arange(len(input), device="cpu") * input.shape[1]
        elif input.dim() != 1:
            raise ValueError(f"input has {input.dim()} axes: expected keys [B, n], or keys [n] "
                             "with offsets [B]")
        else:
            offsets = self._checked(offsets, len(keys))
        bags = Bags(keys, offsets, weights)
        return bags if self.padding_idx is None else bags.without(self.padding_idx)

    def _checked(self, offsets: Optional[torch.Tensor], count: int) -> torch.Tensor:
        if offsets is None:
            raise ValueError("offsets: None: expected where each bag begins, for input is 1-D")
        if offsets.dim() != 1:
            raise ValueError(f"offsets has {offsets.dim()} axes: expected [B]")
        offsets = keys_of("offsets", offsets)
        steps = torch.diff(offsets)
        last = int(offsets[-1]) if len(offsets) else 0
        if (len(offsets) and int(offsets[0]) != 0) or bool((steps < 0).any()) or last > count:
            raise ValueError("offsets: expected to begin with 0 and to rise up to the "
                             f"{count} keys of input")
        if self.include_last_offset and (len(offsets) == 0 or last != count):
            raise ValueError(f"offsets: the last is {last}: expected the number of keys, {count}, "
                             "for include_last_offset")
        return offsets


class Embedding(TableModule):
    """torch.nn.Embedding over a table of the job: the servers keep and train its rows.

    padding_idx: a key that reads as zeros. It needs no row.
    """

    def __init__(self, worker: Any, table: str, *, padding_idx: Optional[int] = None) -> None:
        super().__init__(worker, [table])
        self.table, self.padding_idx = table, padding_idx
        self.embedding_dim = worker.tables[table]

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Returns [*, dim] for keys [*], and raises TypeError for another type than int64."""
        keys, kept = self._kept(input)
        examples = len(input) if input.dim() > 0 else 1
        weight, positions = self.rows({self.table: keys}, examples)[self.table]
        found = functional.embedding(positions, weight, sparse=takes_sparse(weight))
        if kept is not None:
            zeros = found.new_zeros(len(kept), self.embedding_dim)
            found = zeros.index_put((kept.to(found.device),), found)
        return found.view(*input.shape, self.embedding_dim)

    def prefetch(self, input: torch.Tensor) -> None:
        """Asks ahead for the rows that forward() pulls for the same keys in the next step."""
        self.worker.prefetch({self.table: self._kept(input)[0]})

    def extra_repr(self) -> str:
        return f"{self.table!r}, dim={self.embedding_dim}"

    def _kept(self, input: torch.Tensor) -> Any:
        """Returns the keys that are no padding, and which those are: bool [n], None for all."""
        keys = keys_of("input", input)
        if self.padding_idx is None:
            return keys, None
        kept = keys != self.padding_idx
        return keys[kept], kept
