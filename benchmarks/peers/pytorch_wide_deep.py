#!/usr/bin/env python3
"""Trains one case with PyTorch as its documentation shows it, and prints a line of JSON.

Gradients of embeddings are sparse, and Adagrad updates only the rows of the batch.
"""
import torch

import cases
import pytorch_runs


class WideDeep(torch.nn.Module):
    """One weight a key and a number, and an MLP over embeddings and numbers."""

    def __init__(self, case):
        super().__init__()
        rows = case.keys * case.vocabulary
        self.deep = torch.nn.Embedding(rows, case.dim, sparse=True)
        torch.nn.init.normal_(self.deep.weight, std=0.01)
        self.wide = self.wide_numbers = None
        if case.wide:
            self.wide = torch.nn.EmbeddingBag(rows, 1, mode="sum", sparse=True)
            torch.nn.init.zeros_(self.wide.weight)
            if case.numbers:
                self.wide_numbers = torch.nn.Linear(case.numbers, 1)
        self.mlp = pytorch_runs.mlp_of(case)

    def forward(self, keys, numbers):
        deep = self.deep(keys).flatten(1)
        if numbers.shape[1]:
            deep = torch.cat([deep, numbers], dim=1)
        logit = self.mlp(deep)
        if self.wide is not None:
            logit = logit + self.wide(keys)
        if self.wide_numbers is not None:
            logit = logit + self.wide_numbers(numbers)
        return logit.squeeze(1)

    def optimizers(self):
        tables = [t.weight for t in (self.deep, self.wide) if t is not None]
        names = {id(p) for p in tables}
        dense = [p for p in self.parameters() if id(p) not in names]
        return [torch.optim.Adagrad(parameters, lr=rate,
                                    initial_accumulator_value=cases.ACCUMULATOR)
                for parameters, rate in ((tables, cases.TABLE_RATE), (dense, cases.DENSE_RATE))]


class PlainTrainer:
    def __init__(self, case, precision):
        self.model = WideDeep(case)
        self.autocast = pytorch_runs.autocast(precision)
        self.optimizers = self.model.optimizers()
        self.loss_of = torch.nn.BCEWithLogitsLoss()

    def scores(self, keys, numbers):
        with self.autocast:
            return self.model(keys, numbers).float()

    def step(self, keys, numbers, labels):
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        self.loss_of(self.scores(keys, numbers), labels).backward()
        for optimizer in self.optimizers:
            optimizer.step()


if __name__ == "__main__":
    pytorch_runs.main(__doc__, PlainTrainer, {"cpu": ["fp32"], "cuda": pytorch_runs.ON_GPU})
