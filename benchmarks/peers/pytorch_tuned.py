#!/usr/bin/env python3
"""Trains one case with PyTorch tuned for the full speed of the CPU or the GPU, and prints a line of JSON.

Its advantages over the plain script: compiled code for the dense layers, their loss and the update of
rows; gradients of equal keys are summed after the backward pass from sorted keys, without a sparse
tensor, and those of wide weights from one number per example; the first layer reads embeddings and
numbers without a copy that joins them; huge pages; a fused Adagrad for the dense layers. With
--precision=bf16 products use bf16 (autocast). On a GPU without Triton nothing is compiled.
"""
import os

# PyTorch reads this when it first allocates memory, on import.
os.environ["THP_MEM_ALLOC_ENABLE"] = "1"

import torch  # noqa: E402
from torch.nn import functional  # noqa: E402

import cases  # noqa: E402
import pytorch_runs  # noqa: E402

EPSILON = 1e-10  # torch.optim.Adagrad's own.


class Dense(torch.nn.Module):
    """From deep rows [examples, keys, dim], sums of wide weights [examples, 1] and numbers to logits."""

    def __init__(self, case):
        super().__init__()
        self.mlp = pytorch_runs.mlp_of(case)
        self.wide_numbers = None
        if case.wide and case.numbers:
            self.wide_numbers = torch.nn.Linear(case.numbers, 1)

    def forward(self, deep, wide, numbers):
        deep, first = deep.flatten(1), self.mlp[0]
        # The layer's matrix in two parts, so that gradients of rows come in the layout of their update.
        of_deep, of_numbers = first.weight.split([deep.shape[1], numbers.shape[1]], dim=1)
        hidden = functional.linear(deep, of_deep, first.bias)
        if numbers.shape[1]:
            hidden = hidden + functional.linear(numbers, of_numbers)
        logit = self.mlp[1:](hidden)
        if wide is not None:
            logit = logit + wide
        if self.wide_numbers is not None:
            logit = logit + self.wide_numbers(numbers)
        return logit.squeeze(1).float()


@pytorch_runs.compiled(dynamic=True)
def apply_adagrad(table, squares, keys, gradient):
    """Updates the rows of `keys`, which are distinct."""
    sums = squares[keys] + gradient * gradient
    squares[keys] = sums
    table[keys] = table[keys] - cases.TABLE_RATE * gradient / (sums.sqrt() + EPSILON)


class Rows:
    """One row per key: `deep` for the MLP and, if the case has it, one `wide` weight."""

    def __init__(self, case):
        # With histories one row more, for the places behind their last item.
        self.keys_of_example, rows = case.keys, case.keys * case.vocabulary + bool(case.history)
        self.deep = torch.randn(rows, case.dim) * 0.01
        self.deep_squares = torch.full_like(self.deep, cases.ACCUMULATOR)
        self.wide = self.wide_squares = None
        if case.wide:
            self.wide = torch.zeros(rows, 1)
            self.wide_squares = torch.full_like(self.wide, cases.ACCUMULATOR)

    def of(self, keys):
        """Returns every example's deep rows, and the sum of its wide weights or None."""
        deep = functional.embedding(keys, self.deep)
        if self.wide is None:
            return deep, None
        return deep, functional.embedding_bag(keys, self.wide, mode="sum")

    @torch.no_grad()
    def update(self, keys, deep, wide):
        """Updates the rows. `deep` and `wide` are results of `of`, with gradients; those of one row are summed."""
        keys, order = torch.sort(keys.flatten())
        keys, counts = torch.unique_consecutive(keys, return_counts=True)
        starts = torch.cumsum(counts, 0) - counts

        def sums(index, gradient):
            return functional.embedding_bag(index, gradient, starts, mode="sum")

        apply_adagrad(self.deep, self.deep_squares, keys, sums(order, deep.grad.flatten(0, 1)))
        if self.wide is not None:
            examples = order.div(self.keys_of_example, rounding_mode="floor")
            apply_adagrad(self.wide, self.wide_squares, keys, sums(examples, wide.grad))


class TunedTrainer:
    """`rows_of`: class that holds the rows of a case: `Rows` or one with the same methods. `dense_of`: of its
    dense layers."""

    def __init__(self, case, precision, rows_of=Rows, dense_of=Dense):
        torch.set_flush_denormal(True)
        self.rows, self.dense = rows_of(case), dense_of(case)
        self.autocast = pytorch_runs.autocast(precision)
        self.loss_of = pytorch_runs.compiled(dynamic=False)(self.loss_of)
        self.optimizer = torch.optim.Adagrad(self.dense.parameters(), lr=cases.DENSE_RATE,
                                             fused=pytorch_runs.device() == "cpu" or None,
                                             initial_accumulator_value=cases.ACCUMULATOR)

    def loss_of(self, deep, wide, numbers, labels):
        with self.autocast:
            logit = self.dense(deep, wide, numbers)
        return functional.binary_cross_entropy_with_logits(logit, labels)

    def step(self, keys, numbers, labels):
        deep, wide = self.rows.of(keys)
        for found in (deep, wide):
            if found is not None:
                found.requires_grad_()
        self.loss_of(deep, wide, numbers, labels).backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.rows.update(keys, deep, wide)

    def scores(self, keys, numbers):
        with self.autocast:
            return self.dense(*self.rows.of(keys), numbers)


if __name__ == "__main__":
    pytorch_runs.main(__doc__, TunedTrainer,
                      {"cpu": ["fp32", "bf16"], "cuda": pytorch_runs.ON_GPU})
