"""Dense parameters as rows of a table of the job, so that the servers' optimizer trains them."""
import time
import zlib
from typing import Any, Iterable, List

import torch

from hdps._hdps import JobError, RunError

# The key of a row that says that worker 0 has stored its parameters. Tensors are numbered below it.
_MARK_KEY = 1 << 62


class ServerOptimizer:
    """Keeps dense parameters at the servers, in the manner of an optimizer of torch.

    worker: what hdps.join or hdps.local returned.
    parameters: those of a model, in the same order in each worker.
    table: a table of the job that nothing else uses. Its `optimizer` is that of the parameters, its
        initial rows lie between -1 and 1, and its `policy` lets all rows stay.
    wait_s: how long a worker waits for worker 0's parameters, in seconds.

    A new job begins with worker 0's parameters, and one that goes on with those of the servers. So
    the whole model is in their checkpoints, and trains in modes async and ssp as well.

        with worker.step():
            optimizer.pull()
            loss = ...
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    Parameter i is the rows with the keys i << 32 | chunk, each of the table's dim, and zeros after
    its end. Buffers, such as those of BatchNorm, are no parameters: each worker has its own.
    """

    def __init__(self, worker: Any, parameters: Iterable[torch.Tensor], table: str, *,
                 wait_s: float = 300.0) -> None:
        if table not in worker.tables:
            raise JobError(f"table '{table}' is not one of the job's: "
                           f"{', '.join(map(repr, worker.tables))}")
        _check_policy(worker, table)
        self._parameters: List[torch.Tensor] = list(parameters)
        for place, parameter in enumerate(self._parameters):
            if not isinstance(parameter, torch.Tensor) or not parameter.is_floating_point():
                raise TypeError(f"parameters[{place}]: {type(parameter).__name__}: expected a "
                                "tensor of floats (groups have a ServerOptimizer and a table each)")
        if not self._parameters or len({id(p) for p in self._parameters}) < len(self._parameters):
            raise ValueError(f"parameters: {len(self._parameters)} tensors: expected at least one, "
                             "and none twice")
        self._worker, self._table, self._wait_s = worker, table, wait_s
        dim = worker.tables[table]
        chunks = [-(-parameter.numel() // dim) for parameter in self._parameters]
        # Here and below the place and the type are told, for torch's defaults may be others.
        self._keys = [(i << 32) + torch.arange(count, device="cpu") for i, count in enumerate(chunks)]
        self._mark_key = torch.tensor([_MARK_KEY], device="cpu")
        self._all_keys = torch.cat(self._keys)
        # From -2 to -251, which weights of 16 bits hold exactly.
        shapes = repr([tuple(parameter.shape) for parameter in self._parameters])
        self._shapes_mark = -2.0 - zlib.crc32(shapes.encode()) % 250
        # Behind a parameter's end it stays zero.
        self._staged = torch.zeros(sum(chunks), dim, device="cpu", dtype=torch.float32)
        self._parts = list(self._staged.split(chunks))
        # What worker 0 stores, also if the job goes back to its beginning.
        self._initial = [parameter.detach().to("cpu", torch.float32, copy=True)
                         for parameter in self._parameters]
        self._begun = False

    def pull(self, train: bool = True) -> None:
        """Sets the parameters to those of the servers, as each step must begin.

        train: False only looks, before an evaluation: it does not wait until a step may begin.

        The first pull of a new job waits for worker 0's. Raises RunError after `wait_s`, and
        JobError if worker 0's parameters have other shapes.
        """
        if not self._begun or self._worker.clock == 0:  # Perhaps it has gone back there.
            self._begin()
            self._begun = True
        pulled = self._worker.pull(self._table, self._all_keys, train=train)
        rows = torch.from_dlpack(pulled.rows)[torch.from_dlpack(pulled.positions)]
        parts = rows.split([len(keys) for keys in self._keys])
        with torch.no_grad():
            for parameter, part in zip(self._parameters, parts):
                values = part.reshape(-1)[:parameter.numel()].view_as(parameter)
                parameter.copy_(values, non_blocking=True)

    def prefetch(self) -> None:
        """Asks ahead for the next step's pull(). Changes no bits."""
        self._worker.prefetch({self._table: self._all_keys})

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients, or sets them to zero, as torch's optimizers do."""
        for parameter in self._parameters:
            if parameter.grad is not None:
                if set_to_none:
                    parameter.grad = None
                else:
                    parameter.grad.detach_().zero_()

    def step(self) -> None:
        """Pushes the gradients; the worker's advance applies them. One without a gradient rests."""
        keys, gradients = [], []
        for i, parameter in enumerate(self._parameters):
            if parameter.grad is not None:
                self._stage(i, parameter.grad)
                keys.append(self._keys[i])
                gradients.append(self._parts[i])
        if not keys:
            raise ValueError("step: no parameter has a gradient: expected backward() before it")
        whole = len(keys) == len(self._parameters)
        self._worker.push(self._table, torch.cat(keys),
                          self._staged if whole else torch.cat(gradients))

    def _stage(self, i: int, values: torch.Tensor) -> None:
        self._parts[i].view(-1)[:values.numel()].copy_(values.detach().reshape(-1))

    def _begin(self) -> None:
        """Waits until worker 0 has stored its parameters, which it does if they are not there.

        A pull at the same time could meet some servers before that and others after it.
        """
        deadline = time.monotonic() + self._wait_s
        while not self._stored():
            if self._worker.rank == 0:
                for i, values in enumerate(self._initial):
                    self._stage(i, values)
                self._worker.store(self._table, self._all_keys, self._staged)
                # The mark comes last: whoever sees it finds all others.
                self._worker.store(self._table, self._mark_key,
                                   torch.full_like(self._staged[:1], self._shapes_mark))
                return
            if time.monotonic() > deadline:
                raise RunError(f"table '{self._table}': worker 0 has not stored its parameters "
                               f"within {self._wait_s:g} s: expected a ServerOptimizer there, too")
            time.sleep(0.01)

    def _stored(self) -> bool:
        """Returns whether worker 0 has stored its parameters; the mark tells their shapes."""
        mark = torch.from_dlpack(self._worker.pull(self._table, self._mark_key, train=False).rows)
        value: int = round(mark[0, 0].item())
        if value <= -2 and value != self._shapes_mark:
            raise JobError(f"table '{self._table}': worker 0's parameters have other shapes than "
                           f"these {len(self._parameters)}: expected the same model in each worker")
        return value <= -2


def _check_policy(worker: Any, table: str) -> None:
    """Raises JobError if rows of the table may leave or come late."""
    listed = worker.job.to_dict()["model"]["tables"]
    policy = next(each for each in listed if each["name"] == table).get("policy", {})
    for name, plain in (("admit_after", 1), ("evict_after_steps", 0), ("evict_after_seconds", 0), ("max_rows", 0),
                        ("max_bytes", 0)):
        if policy.get(name, plain) != plain:
            raise JobError(f"table '{table}': policy.{name}={policy[name]}: expected none, for "
                           "each row is a part of a parameter")
