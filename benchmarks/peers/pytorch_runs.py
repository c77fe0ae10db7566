"""What the scripts of PyTorch share: flags, data, the clock over two epochs, AUC, a line of JSON.

Rows are in memory before the clock starts: reading and hashing are not counted, as they are for hdps.
"""
import argparse
import json
import os
import time

import numpy
import torch

import cases
import machine

# Of the first epoch these are not counted: memory, threads and compiled code are there from then on.
WARM_STEPS = 2


def load(folder, name):
    """Keys as rows of one table for all columns, numbers, labels."""
    arrays = numpy.load(os.path.join(folder, name + ".npz"))
    first_row = numpy.arange(arrays["ids"].shape[1]) * cases.VOCABULARY
    return (torch.from_numpy(arrays["ids"] + first_row), torch.from_numpy(arrays["numbers"]),
            torch.from_numpy(arrays["labels"]).float())


def mlp_of(case):
    layers, inputs = [], case.numbers + case.keys * case.dim
    for units in case.hidden:
        layers += [torch.nn.Linear(inputs, units), torch.nn.ReLU()]
        inputs = units
    return torch.nn.Sequential(*layers, torch.nn.Linear(inputs, 1))


def auc_of(scores, labels):
    order = numpy.argsort(scores, kind="stable")
    ranks = numpy.empty(len(scores))
    ranks[order] = numpy.arange(1, len(scores) + 1)
    positive = labels > 0
    n1, n0 = positive.sum(), (~positive).sum()
    return float((ranks[positive].sum() - n1 * (n1 + 1) / 2) / (n1 * n0))


def auc_of_trainer(trainer, folder):
    keys, numbers, labels = load(folder, "eval")
    with torch.no_grad():
        return auc_of(trainer.scores(keys, numbers).float().numpy(), labels.numpy())


def two_epochs(case, folder, trainer):
    """examples/s of the first and of the second epoch and, where the case has it, AUC behind the first."""
    columns = load(folder, "train")
    batches = list(zip(*(column.split(case.batch) for column in columns)))
    figures = {}
    for epoch, warm_steps in (("first_epoch", WARM_STEPS), ("second_epoch", 0)):
        for step, batch in enumerate(batches):
            if step == warm_steps:
                began = time.perf_counter()
            trainer.step(*batch)
        seconds = time.perf_counter() - began
        figures[epoch] = (len(batches) - warm_steps) * case.batch / seconds
        if case.eval_rows and "auc" not in figures:
            figures["auc"] = auc_of_trainer(trainer, folder)
    return figures


def main(about, make_trainer, precisions):
    """Trains the case that the flags name with `make_trainer(case, precision)`: an object with
    `step(keys, numbers, labels)` and `scores(keys, numbers)`."""
    parser = argparse.ArgumentParser(description=about,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", required=True, choices=[case.name for case in cases.CASES])
    parser.add_argument("--data", required=True, help="folder of the case's data; made when missing")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precision", default=precisions[0], choices=precisions,
                        help="of the products; weights and sums are fp32 in any case")
    flags = parser.parse_args()
    torch.set_num_threads(flags.threads)
    torch.manual_seed(cases.SEED)
    case = cases.case_of(flags.case)
    cases.make_data(case, flags.data)
    run = two_epochs(case, flags.data, make_trainer(case, flags.precision))
    print(json.dumps({"case": case.name, "version": "PyTorch " + torch.__version__.split("+")[0],
                      "precision": flags.precision, "threads": flags.threads, **machine.cpu(), **run}))
