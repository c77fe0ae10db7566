"""Shared code of the PyTorch scripts: flags, data, timing of two epochs, AUC, a line of JSON.

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

# First steps, not counted: they allocate memory, start threads and compile code.
WARM_STEPS = 2
# Precisions of products on a GPU.
ON_GPU = ["fp32", "tf32", "bf16"]


def device():
    """Returns PyTorch's default device: "cpu" or "cuda"."""
    return torch.zeros(()).device.type


def autocast(precision):
    return torch.autocast(device(), torch.bfloat16, enabled=precision == "bf16")


def compiles():
    """Is true if compilation works: on a GPU it needs Triton, which may be missing."""
    if device() == "cpu":
        return True
    try:
        import triton  # noqa: F401
    except ImportError:
        return False
    return True


def compiled(**how):
    """Returns a version of a function that is compiled at its first call, if possible."""
    def make(function):
        made = []

        def call(*arguments):
            if not made:
                made.append(torch.compile(function, **how) if compiles() else function)
            return made[0](*arguments)
        return call
    return make


def finish():
    if device() == "cuda":
        torch.cuda.synchronize()


def load(case, folder, name):
    """Returns keys (as rows of one table for all columns, those of a history first), numbers and labels.
    Histories share the rows of the first column; behind their last item stands the row behind all others."""
    arrays = numpy.load(os.path.join(folder, name + ".npz"))
    keys = arrays["ids"] + numpy.arange(case.keys) * case.vocabulary
    if case.history:
        items = arrays["history"]
        none = case.keys * case.vocabulary
        keys = numpy.concatenate([numpy.where(items < 0, none, items), keys], axis=1)
    return (torch.from_numpy(keys), torch.from_numpy(arrays["numbers"]),
            torch.from_numpy(arrays["labels"]).float())


def layers_of(inputs, hidden):
    """Returns an MLP with a ReLU behind each hidden layer, and one output."""
    layers = []
    for units in hidden:
        layers += [torch.nn.Linear(inputs, units), torch.nn.ReLU()]
        inputs = units
    return torch.nn.Sequential(*layers, torch.nn.Linear(inputs, 1))


def mlp_of(case):
    return layers_of(case.numbers + case.keys * case.dim, case.hidden)


def auc_of(scores, labels):
    order = numpy.argsort(scores, kind="stable")
    ranks = numpy.empty(len(scores))
    ranks[order] = numpy.arange(1, len(scores) + 1)
    positive = labels > 0
    n1, n0 = positive.sum(), (~positive).sum()
    return float((ranks[positive].sum() - n1 * (n1 + 1) / 2) / (n1 * n0))


def auc_of_trainer(case, trainer, folder):
    keys, numbers, labels = load(case, folder, "eval")
    with torch.no_grad():
        scores = trainer.scores(keys.to(device()), numbers.to(device()))
    return auc_of(scores.float().cpu().numpy(), labels.numpy())


def two_epochs(case, folder, trainer):
    """Returns examples/s of both epochs and, if the case has evaluation, AUC after the first."""
    columns = load(case, folder, "train")
    if device() == "cuda":
        columns = [column.pin_memory() for column in columns]
    batches = list(zip(*(column.split(case.batch) for column in columns)))
    figures = {}
    for epoch, warm_steps in (("first_epoch", WARM_STEPS), ("second_epoch", 0)):
        for step, batch in enumerate(batches):
            if step == warm_steps:
                finish()
                began = time.perf_counter()
            trainer.step(*(column.to(device(), non_blocking=True) for column in batch))
        finish()
        seconds = time.perf_counter() - began
        figures[epoch] = (len(batches) - warm_steps) * case.batch / seconds
        if case.eval_rows and "auc" not in figures:
            figures["auc"] = auc_of_trainer(case, trainer, folder)
    return figures


def parse_flags(about, precisions, arguments=None, of=cases.CASES):
    parser = argparse.ArgumentParser(description=about,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", required=True, choices=[case.name for case in of])
    parser.add_argument("--data", required=True, help="folder of the case's data; made when missing")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu", choices=list(precisions))
    parser.add_argument("--precision", default="fp32",
                        help="of the products; weights and sums are fp32 in any case")
    flags = parser.parse_args(arguments)
    if flags.precision not in precisions[flags.device]:
        parser.error("--precision=%s: on %s there are %s" % (
            flags.precision, flags.device, ", ".join(precisions[flags.device])))
    return flags


def main(about, make_trainer, precisions, arguments=None, of=cases.CASES):
    """Trains the case that the flags name with `make_trainer(case, precision)`: an object with
    `step(keys, numbers, labels)`, `scores(keys, numbers)` and perhaps `end()`, which returns figures of its
    own. `precisions`: of each device. `of`: the cases to choose from."""
    flags = parse_flags(about, precisions, arguments, of)
    if flags.device == "cuda":
        torch.set_default_device("cuda")
        torch.set_float32_matmul_precision("high" if flags.precision == "tf32" else "highest")
    torch.set_num_threads(flags.threads)
    torch.manual_seed(cases.SEED)
    case = cases.case_of(flags.case)
    cases.make_data(case, flags.data)
    trainer = make_trainer(case, flags.precision)
    run = two_epochs(case, flags.data, trainer)
    if hasattr(trainer, "end"):
        run.update(trainer.end())
    print(json.dumps({"case": case.name, "version": "PyTorch " + torch.__version__.split("+")[0],
                      "precision": flags.precision, "threads": flags.threads, **machine.cpu(),
                      **({"gpu": torch.cuda.get_device_name(), "compiles": compiles()} if flags.device == "cuda"
                         else {}), **run}))
