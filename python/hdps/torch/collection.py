"""Bags of many features over the tables of a job, which are pulled together."""
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence

import torch

from hdps.torch.bags import Bags, check_mode, pooled
from hdps.torch.rows import TableModule, keys_of


class KeyedTensor:
    """One tensor a feature, with the reading calls of TorchRec's KeyedTensor."""

    def __init__(self, parts: Dict[str, torch.Tensor]) -> None:
        self._parts = parts

    def keys(self) -> List[str]:
        """Returns the names of the features, in the order of the collection."""
        return list(self._parts)

    def values(self) -> torch.Tensor:
        """Returns all features side by side: [B, sum of their dims]."""
        return torch.cat(list(self._parts.values()), dim=1)

    def to_dict(self) -> Dict[str, torch.Tensor]:
        """Returns [B, dim] for each feature."""
        return dict(self._parts)

    def __getitem__(self, feature: str) -> torch.Tensor:
        return self._parts[feature]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)


class _Features(NamedTuple):
    """Keys of features, one after the other, as TorchRec's KeyedJaggedTensor has them."""

    names: List[str]
    keys: torch.Tensor  # int64 [n]
    lengths: torch.Tensor  # int64 [features, B]
    weights: Optional[torch.Tensor]  # [n]


class EmbeddingBagCollection(TableModule):
    """EmbeddingBags of many features, whose rows come by one message a server.

    tables: the table of each feature. Features may share one: its rows come once.
    mode: how the rows of a bag become one: "sum", "mean" or "max".
    """

    def __init__(self, worker: Any, tables: Mapping[str, str], mode: str = "sum") -> None:
        super().__init__(worker, tables.values())
        check_mode(mode)
        self.tables, self.mode = dict(tables), mode

    def forward(self, values: Any, lengths: Optional[torch.Tensor] = None,
                features: Optional[Sequence[str]] = None,
                weights: Optional[torch.Tensor] = None) -> KeyedTensor:
        """Returns [B, dim] for each feature of the collection.

        values: keys [n], those of the first feature first; or an object with the methods keys(),
            values(), lengths() and weights_or_none() of TorchRec's KeyedJaggedTensor, which then is
            the only argument.
        lengths: how many keys each example has: [features * B], those of the first feature first.
        features: the names of the features. None: those of the collection, in its order.
        weights: a factor for each key: [n], for mode "sum".

        Raises TypeError for types and ValueError for names and shapes that cannot be.
        """
        given = self._features(values, lengths, features, weights)
        counts = given.lengths.sum(1).tolist()
        keys = dict(zip(given.names, given.keys.split(counts)))
        bags = dict(zip(given.names, given.lengths))
        factors: Dict[str, torch.Tensor] = {}
        if given.weights is not None:
            factors = dict(zip(given.names, given.weights.split(counts)))
        sharing, examples = self._sharing(), given.lengths.shape[1]
        rows = self.rows(_asked(sharing, keys), examples)
        parts: Dict[str, torch.Tensor] = {}
        for table, names in sharing.items():
            # The bags of all features of a table are pooled as those of one.
            sizes = torch.cat([bags[name] for name in names])
            table_bags = Bags(rows[table].positions, sizes.cumsum(0) - sizes,
                              torch.cat([factors[name] for name in names]) if factors else None)
            found = pooled(rows[table].weight, rows[table].positions, table_bags, self.mode)
            parts.update(zip(names, found.view(len(names), examples, found.shape[1])))
        return KeyedTensor({name: parts[name] for name in self.tables})

    def prefetch(self, values: Any, lengths: Optional[torch.Tensor] = None,
                 features: Optional[Sequence[str]] = None,
                 weights: Optional[torch.Tensor] = None) -> None:
        """Asks ahead for the rows that forward() pulls for the same arguments in the next step."""
        given = self._features(values, lengths, features, weights)
        keys = dict(zip(given.names, given.keys.split(given.lengths.sum(1).tolist())))
        self.worker.prefetch(_asked(self._sharing(), keys))

    def extra_repr(self) -> str:
        return f"{self.tables}, mode={self.mode!r}"

    def _sharing(self) -> Dict[str, List[str]]:
        """Returns the features of each table."""
        sharing: Dict[str, List[str]] = {}
        for feature, table in self.tables.items():
            sharing.setdefault(table, []).append(feature)
        return sharing

    def _features(self, values: Any, lengths: Optional[torch.Tensor],
                  features: Optional[Sequence[str]], weights: Optional[torch.Tensor]) -> _Features:
        if not isinstance(values, torch.Tensor) and hasattr(values, "lengths"):
            features, lengths = values.keys(), values.lengths()
            weights = values.weights_or_none() if hasattr(values, "weights_or_none") else None
            values = values.values()
        keys = keys_of("values", values)
        names = list(self.tables if features is None else features)
        for name in self.tables:
            if names.count(name) != 1:
                raise ValueError(f"feature '{name}' is there {names.count(name)} times among "
                                 f"{names}: expected once")
        if lengths is None:
            raise ValueError("lengths: None: expected how many keys each example has")
        sizes = keys_of("lengths", lengths)
        if len(sizes) % len(names) != 0 or bool((sizes < 0).any()):
            raise ValueError(f"lengths: {len(sizes)} numbers: expected as many for each of the "
                             f"{len(names)} features, none below 0")
        if int(sizes.sum()) != len(keys):
            raise ValueError(f"lengths: their sum is {int(sizes.sum())}: expected the number of "
                             f"keys in values, {len(keys)}")
        if weights is not None:
            check_mode(self.mode, weighted=True)
            if weights.numel() != len(keys):
                raise ValueError(f"weights: {weights.numel()} numbers: expected one for each of "
                                 f"the {len(keys)} keys")
            weights = weights.reshape(-1)
        return _Features(names, keys, sizes.view(len(names), len(sizes) // len(names)), weights)


def _asked(sharing: Mapping[str, Sequence[str]],
           keys: Mapping[str, torch.Tensor]) -> Dict[str, torch.Tensor]:
    """Returns the keys of each table: those of its features, one after the other."""
    return {table: keys[names[0]] if len(names) == 1 else torch.cat([keys[name] for name in names])
            for table, names in sharing.items()}
