#!/usr/bin/env python3
"""Trains one case with PyTorch as somebody would who wants all the speed of the CPU, and prints a line
of JSON.

What it has before the plain script: compiled code for the dense layers, their loss and the rows'
update; one table, so that a key's wide weight lies in its deep row; gradients of equal keys added
behind the backward pass, from sorted keys, in place of a sparse tensor; huge pages; a fused Adagrad for
the dense layers. With --precision=bf16 products are taken of bf16 numbers (autocast).
"""
import os

# PyTorch looks for this when it first takes memory, which is when it is imported.
os.environ["THP_MEM_ALLOC_ENABLE"] = "1"

import torch  # noqa: E402
from torch.nn import functional  # noqa: E402

import cases  # noqa: E402
import pytorch_runs  # noqa: E402

EPSILON = 1e-10  # torch.optim.Adagrad's own.


class Dense(torch.nn.Module):
    """From rows [examples, keys, dim or dim + 1] and numbers to logits."""

    def __init__(self, case):
        super().__init__()
        self.dim, self.wide = case.dim, case.wide
        self.mlp = pytorch_runs.mlp_of(case)
        self.wide_numbers = None
        if case.wide and case.numbers:
            self.wide_numbers = torch.nn.Linear(case.numbers, 1)

    def forward(self, rows, numbers):
        deep = rows[:, :, :self.dim].flatten(1)
        if numbers.shape[1]:
            deep = torch.cat([deep, numbers], dim=1)
        logit = self.mlp(deep)
        if self.wide:
            logit = logit + rows[:, :, self.dim].sum(1, keepdim=True)
        if self.wide_numbers is not None:
            logit = logit + self.wide_numbers(numbers)
        return logit.squeeze(1).float()


@torch.compile(dynamic=True)
def apply_adagrad(table, squares, keys, gradient):
    """Changes the rows of `keys`, each of which stands there once."""
    sums = squares[keys] + gradient * gradient
    squares[keys] = sums
    table[keys] = table[keys] - cases.TABLE_RATE * gradient / (sums.sqrt() + EPSILON)


class Rows:
    """All rows of all columns with Adagrad's state; the wide weight is a row's last number."""

    def __init__(self, case):
        width = case.dim + (1 if case.wide else 0)
        self.table = torch.randn(case.keys * cases.VOCABULARY, width) * 0.01
        if case.wide:
            self.table[:, case.dim] = 0
        self.squares = torch.full_like(self.table, cases.ACCUMULATOR)

    def of(self, keys):
        return functional.embedding(keys, self.table)

    @torch.no_grad()
    def update(self, keys, gradient):
        """`gradient`: of each row as often as it was read."""
        keys, order = torch.sort(keys.flatten())
        keys, counts = torch.unique_consecutive(keys, return_counts=True)
        starts = torch.cumsum(counts, 0) - counts
        sums = functional.embedding_bag(order, gradient.flatten(0, 1), starts, mode="sum")
        apply_adagrad(self.table, self.squares, keys, sums)


class TunedTrainer:
    def __init__(self, case, precision):
        torch.set_flush_denormal(True)
        self.rows, self.dense = Rows(case), Dense(case)
        self.autocast = torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16")
        self.loss_of = torch.compile(self.loss_of, dynamic=False)
        self.optimizer = torch.optim.Adagrad(self.dense.parameters(), lr=cases.DENSE_RATE, fused=True,
                                             initial_accumulator_value=cases.ACCUMULATOR)

    def loss_of(self, rows, numbers, labels):
        with self.autocast:
            logit = self.dense(rows, numbers)
        return functional.binary_cross_entropy_with_logits(logit, labels)

    def step(self, keys, numbers, labels):
        rows = self.rows.of(keys).requires_grad_()
        self.loss_of(rows, numbers, labels).backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.rows.update(keys, rows.grad)

    def scores(self, keys, numbers):
        with self.autocast:
            return self.dense(self.rows.of(keys), numbers)


if __name__ == "__main__":
    pytorch_runs.main(__doc__, TunedTrainer, ["fp32", "bf16"])
