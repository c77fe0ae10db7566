"""Rows of a job's tables as tensors whose gradients go to the servers."""
from typing import Any, Dict, Iterable, NamedTuple, Tuple

import torch

from hdps._hdps import JobError


class TableRows(NamedTuple):
    """Rows of the distinct keys of one table, and where each key's row is."""

    weight: torch.Tensor  # [m, dim], on the device and of the dtype of the module's outputs.
    positions: torch.Tensor  # int64 [n], on the same device.


def keys_of(name: str, given: Any) -> torch.Tensor:
    """Returns keys of any shape as int64 [n] in host memory. A key of uint64 keeps its bits."""
    if not isinstance(given, torch.Tensor):
        raise TypeError(f"{name}: {type(given).__name__}: expected a tensor of int64 keys")
    if given.dtype == getattr(torch, "uint64", None):
        given = given.view(torch.int64)
    if given.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"{name}: a tensor of {given.dtype}: expected int64 keys, as {name}.long()")
    return given.detach().reshape(-1).to("cpu", torch.int64)


class TableModule(torch.nn.Module):
    """A module whose weights are rows of tables at the servers.

    It has no parameters, so that torch's optimizers and DistributedDataParallel pass it by. Its
    outputs have the device and the dtype to which the module was moved, as those of modules of
    torch.
    """

    def __init__(self, worker: Any, tables: Iterable[str]) -> None:
        super().__init__()
        for table in tables:
            if table not in worker.tables:
                raise JobError(f"table '{table}' is not one of the job's: "
                               f"{', '.join(map(repr, worker.tables))}")
        self.worker = worker
        self._like = torch.empty(0)  # Not a buffer: DistributedDataParallel would broadcast it.

    def _apply(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
        self._like = fn(self._like)
        return super()._apply(fn, *args, **kwargs)

    def rows(self, asked: Dict[str, torch.Tensor], examples: int) -> Dict[str, TableRows]:
        """Pulls rows for keys [n] of each table, by one message a server.

        In training the rows' gradients are pushed as soon as backward() has them. In evaluation,
        or under torch.no_grad(), the pull makes no rows and waits for nobody.
        """
        train = self.training and torch.is_grad_enabled()
        pulled = self.worker.pull(asked, train=train)
        if train and self.worker.examples is None:  # The first module of a step counts them.
            self.worker.examples = examples
        return {table: self._leaf(pulled[table], train) for table in asked}

    def _leaf(self, pulled: Any, train: bool) -> TableRows:
        rows = torch.from_dlpack(pulled.rows)  # Shares the memory.
        positions = torch.from_dlpack(pulled.positions)
        if self._like.is_cuda:
            rows = rows.pin_memory()  # Then the copy to the device overlaps with what follows.
        if train:
            rows.requires_grad_()
            # The leaf lies in host memory, so the push runs on the thread that called backward().
            rows.register_hook(lambda gradient: _push(self.worker, pulled, positions, gradient))
        return TableRows(rows.to(self._like, non_blocking=True),
                         positions.to(self._like.device, non_blocking=True))


def takes_sparse(weight: torch.Tensor) -> bool:
    """Returns whether gradients may be sparse: a change of device or dtype needs dense ones."""
    return bool(weight.is_leaf)


def _push(worker: Any, pulled: Any, positions: torch.Tensor, gradient: torch.Tensor) -> None:
    """Pushes a gradient [m, dim], of which torch gives the terms of each key without their sums.

    hdps sums them; torch's own backward() of bags, for dense gradients, needs thrice the time.
    """
    if not gradient.is_sparse:
        worker.push(pulled, gradient.contiguous())
        return
    terms = gradient._values()
    # Where rows were used twice, the terms of both stand there.
    if torch.equal(gradient._indices()[0], positions):
        worker.push(pulled, terms.contiguous(), each=True)
    else:
        worker.push(pulled, gradient.to_dense())
