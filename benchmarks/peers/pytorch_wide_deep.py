#!/usr/bin/env python3
"""Trains one case with PyTorch on the CPU and prints a line of JSON: examples/s of the first and of
the second epoch and, if asked, AUC behind the first.

Rows are in memory before the clock starts: reading and hashing are not counted, as they are for hdps.
Gradients of embeddings are sparse, and Adagrad updates only the rows of the batch.
"""
import argparse
import json
import os
import time

import numpy
import torch

import cases


class WideDeep(torch.nn.Module):
    """One weight a key and a number, and an MLP over embeddings and numbers."""

    def __init__(self, case):
        super().__init__()
        self.register_buffer("first_row", torch.arange(case.keys) * cases.VOCABULARY)
        rows = case.keys * cases.VOCABULARY
        self.deep = torch.nn.Embedding(rows, case.dim, sparse=True)
        torch.nn.init.normal_(self.deep.weight, std=0.01)
        self.wide = self.wide_numbers = None
        if case.wide:
            self.wide = torch.nn.EmbeddingBag(rows, 1, mode="sum", sparse=True)
            torch.nn.init.zeros_(self.wide.weight)
            if case.numbers:
                self.wide_numbers = torch.nn.Linear(case.numbers, 1)
        layers = []
        inputs = case.numbers + case.keys * case.dim
        for units in case.hidden:
            layers += [torch.nn.Linear(inputs, units), torch.nn.ReLU()]
            inputs = units
        self.mlp = torch.nn.Sequential(*layers, torch.nn.Linear(inputs, 1))

    def forward(self, ids, numbers):
        keys = ids + self.first_row
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


def load(folder, name):
    arrays = numpy.load(os.path.join(folder, name + ".npz"))
    return (torch.from_numpy(arrays["ids"]), torch.from_numpy(arrays["numbers"]),
            torch.from_numpy(arrays["labels"]).float())


def auc_of(scores, labels):
    order = numpy.argsort(scores, kind="stable")
    ranks = numpy.empty(len(scores))
    ranks[order] = numpy.arange(1, len(scores) + 1)
    positive = labels > 0
    n1, n0 = positive.sum(), (~positive).sum()
    return float((ranks[positive].sum() - n1 * (n1 + 1) / 2) / (n1 * n0))


def auc_of_model(model, folder):
    ids, numbers, labels = load(folder, "eval")
    with torch.no_grad():
        return auc_of(model(ids, numbers).numpy(), labels.numpy())


def train(case, folder):
    torch.manual_seed(cases.SEED)
    model = WideDeep(case)
    optimizers = model.optimizers()
    ids, numbers, labels = load(folder, "train")
    loss_of = torch.nn.BCEWithLogitsLoss()
    figures = {"case": case.name, "system": "pytorch " + torch.__version__,
               "threads": torch.get_num_threads()}
    # Of the first epoch two steps are not counted: memory and threads are there from then on.
    for epoch, warm_steps in (("first_epoch", 2), ("second_epoch", 0)):
        for step in range(case.steps):
            if step == warm_steps:
                began = time.perf_counter()
            part = slice(step * case.batch, (step + 1) * case.batch)
            for optimizer in optimizers:
                optimizer.zero_grad()
            loss_of(model(ids[part], numbers[part]), labels[part]).backward()
            for optimizer in optimizers:
                optimizer.step()
        seconds = time.perf_counter() - began
        figures[epoch] = (case.steps - warm_steps) * case.batch / seconds
        if case.eval_rows and "auc" not in figures:
            figures["auc"] = auc_of_model(model, folder)
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", required=True, choices=[case.name for case in cases.CASES])
    parser.add_argument("--data", required=True, help="folder of the case's data; made when missing")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only_data", action="store_true", help="make the data and train nothing")
    flags = parser.parse_args()
    torch.set_num_threads(flags.threads)
    case = cases.case_of(flags.case)
    cases.make_data(case, flags.data)
    if not flags.only_data:
        print(json.dumps(train(case, flags.data)))


if __name__ == "__main__":
    main()
