"""The batches of the job's own reader as tensors."""
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch
from torch.utils.data import IterableDataset, get_worker_info
from torch.utils.dlpack import from_dlpack

from hdps import _hdps
from hdps._data import data_reader


class Bags(NamedTuple):
    """The arguments of an EmbeddingBag: keys [k], where each example's begin [n], a factor a key."""

    input: torch.Tensor
    offsets: torch.Tensor
    per_sample_weights: Optional[torch.Tensor]  # None: all are 1.


class Features:
    """The sparse features of a batch, with the reading calls of TorchRec's KeyedJaggedTensor.

    features["age"] has the arguments of an EmbeddingBag, and an EmbeddingBagCollection takes the
    whole.
    """

    def __init__(self, lengths: Dict[str, torch.Tensor], bags: Dict[str, Bags]) -> None:
        self._lengths, self._bags = lengths, bags

    def keys(self) -> List[str]:
        """Returns the names of the features."""
        return list(self._bags)

    def values(self) -> torch.Tensor:
        """Returns the keys of all features, those of the first one first: int64 [k]."""
        return torch.cat([bags.input for bags in self._bags.values()])

    def lengths(self) -> torch.Tensor:
        """Returns how many keys each example has, feature by feature: int64 [features * n]."""
        return torch.cat(list(self._lengths.values()))

    def weights_or_none(self) -> Optional[torch.Tensor]:
        """Returns the factors of values(); None: all are 1."""
        weights = [bags.per_sample_weights for bags in self._bags.values()]
        if all(weight is None for weight in weights):
            return None
        return torch.cat([torch.ones(len(bags.input), device="cpu", dtype=torch.float32)
                          if weight is None else weight
                          for weight, bags in zip(weights, self._bags.values())])

    def __getitem__(self, feature: str) -> Bags:
        return self._bags[feature]


class Dataset(IterableDataset):
    """The batches of the job's own reader, for a loop, or a DataLoader with batch_size=None.

    source: a worker, whose part of the rows it reads, or a job as hdps.read takes it.
    which: "train", or an evaluation set, whose rows come whole and in the order of the files.
    part: the rank of a worker and the number of workers; None: the worker's own, and all rows for a
        job or an evaluation set.
    epochs: how many epochs an iteration of "train" has.
    rows: stand for the files of "train" or "eval", as in hdps.train.
    threads: parse the rows of large batches; 0: one per core.

    A batch is a dict of `labels` float32 [n] (or [n, labels]), `numeric` float32 [n, columns],
    `features` (a Features), and `weights` and `groups` [n] where the data have them. Tensors share
    the memory of the reader, which reads ahead on its own thread; so num_workers stays 0.

    The position in "train" goes on from iteration to iteration: one that was left goes on behind
    its last batch, and the one after the last epoch begins with another epoch. state_dict() and
    load_state_dict() make it part of a checkpoint: hdps.torch.keep(worker, data=dataset, ...).
    """

    def __init__(self, source: Any, *, which: str = "train", part: Optional[Tuple[int, int]] = None,
                 epochs: int = 1, rows: Any = None, threads: int = 0) -> None:
        super().__init__()
        if not isinstance(epochs, int) or epochs < 1:
            raise _hdps.JobError(f"epochs={epochs!r}: expected a whole number from 1 on")
        self._worker = source if hasattr(source, "rank") else None
        job = source if self._worker is None else source.job
        self._reader = data_reader(job, which, rows, threads)
        self._which, self._part, self._epochs = which, part, epochs
        self._epoch = self._step = 0
        self._ended = False  # The position is the end of the last epoch of an iteration.
        self._batches: Optional[_hdps.Batches] = None  # Opened at the position; None: not yet.
        self._opened: Optional[Tuple[int, int]] = None  # The part of these batches.

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        if get_worker_info() is not None:
            raise _hdps.JobError("a hdps.torch.Dataset reads ahead by itself, and its position is one: "
                                 "give the DataLoader num_workers=0")
        if self._which != "train":
            self._begin(0, 0)
        elif self._ended:
            self._begin(self._epoch + 1, 0)
        last = self._epoch // self._epochs * self._epochs + self._epochs - 1
        while True:
            batch = self._next()
            if batch is not None:
                yield _tensors_of(batch)
            elif self._epoch < last and self._which == "train":
                self._begin(self._epoch + 1, 0)
            else:
                self._ended = True
                return

    def state_dict(self) -> Dict[str, int]:
        """Returns the position: that behind the last batch that was given."""
        return {"epoch": self._epoch, "step": self._step}

    def load_state_dict(self, state: Dict[str, int]) -> None:
        """Goes to a position; an iteration that is under way goes on from there."""
        self._begin(state["epoch"], state["step"])

    def _begin(self, epoch: int, step: int) -> None:
        self._epoch, self._step = epoch, step
        self._ended, self._batches = False, None

    def _next(self) -> Optional[_hdps.Batch]:
        part = self._part_now()  # Which `hdps scale` changes while the job runs.
        if self._batches is None or self._opened != part:
            self._batches = self._reader.read(self._which, part, self._epoch, self._step)
            self._opened = part
        batch = next(self._batches, None)
        self._step = self._batches.position[1]
        return batch

    def _part_now(self) -> Tuple[int, int]:
        if self._part is not None:
            return self._part
        if self._worker is None or self._which != "train":
            return (0, 1)
        return (self._worker.rank, self._worker.workers)


def _tensors_of(batch: _hdps.Batch) -> Dict[str, Any]:
    lengths, bags = {}, {}
    for name, feature in batch.features.items():
        lengths[name] = from_dlpack(feature.lengths)
        bags[name] = Bags(_int64(feature.keys), from_dlpack(feature.offsets)[:-1],
                          None if feature.weights is None else from_dlpack(feature.weights))
    tensors = {"labels": from_dlpack(batch.labels), "numeric": from_dlpack(batch.numeric),
               "features": Features(lengths, bags)}
    if batch.weights is not None:
        tensors["weights"] = from_dlpack(batch.weights)
    if batch.groups is not None:
        tensors["groups"] = _int64(batch.groups)
    return tensors


def _int64(keys: _hdps.Array) -> torch.Tensor:
    """Returns the bits of keys as int64: not every torch has uint64."""
    signed: torch.Tensor = from_dlpack(keys.view("int64"))
    return signed
