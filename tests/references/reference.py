"""Trains a model in PyTorch from formula-made weights and batches and records what came of it.

A reference is a script NAME.py beside this one: it calls record() with a job, the shapes of the dense
tensors as hdps names them, and a function that gives the logits. Needs Debian's python3-torch.
"""

import json
import os

import torch

import formula

STEPS = 50
LEARNING_RATE = 0.125  # Powers of two, so that both sides round alike.
WEIGHT_SCALE = 0.5
EXAMPLES = 16
VALUES_PER_FEATURE = 8


def data_section(numeric, sparse, labels=1, special=()):
    """The job's data: columns label, label1.., then `special`, N0.., C0.. as the driver fills them."""
    names = ["label"] + [f"label{t}" for t in range(1, labels)]
    columns = [{"name": name, "type": "label"} for name in names]
    columns += [{"name": name, "type": name} for name in special]
    columns += [{"name": f"N{i}", "type": "numeric"} for i in range(numeric)]
    columns += [{"name": f"C{i}", "type": "multi"} for i in range(sparse)]
    return {"format": "csv", "train": ["none.csv"], "columns": columns}


class Batch:
    """Step `step`: labels [n], numeric [n, N], and for each sparse feature a list of keys an example.

    task_labels: one list of labels a task; weights [n] in [0, 2); groups [n], of four.
    """

    def __init__(self, step, numeric, bags, classes, examples=EXAMPLES):
        self.examples = examples
        at = lambda name, i: formula.unit(f"batch {step} {name}", i)
        self.labels = torch.tensor([float(int(at("label", i) * classes)) for i in range(examples)])
        self.task_labels = [self.labels] + [
            torch.tensor([float(int(at(f"label{t}", i) * classes)) for i in range(examples)])
            for t in range(1, 3)
        ]
        self.weights = torch.tensor([2 * at("weight", i) for i in range(examples)])
        self.groups = [int(at("group", i) * 4) for i in range(examples)]
        self.numeric = torch.tensor(
            formula.values(f"batch {step} numeric", examples * numeric, 1.0)
        ).reshape(examples, numeric)
        self.keys = []
        for f, longest in enumerate(bags):
            bag_of = []
            for i in range(examples):
                length = 1 + int(at(f"length {f}", i) * longest)
                first = 1000 * i
                bag_of.append(
                    [
                        int(at(f"key {f}", first + k) * VALUES_PER_FEATURE) + VALUES_PER_FEATURE * f
                        for k in range(length)
                    ]
                )
            self.keys.append(bag_of)


class Parameters:
    """Dense tensors by name, and the rows of tables: table -> [all keys, dim]."""

    def __init__(self, tensors, tables, num_features):
        self.dense = {}
        for name, shape in tensors.items():
            count = 1
            for extent in shape:
                count *= extent
            numbers = formula.values("tensor " + name, count, WEIGHT_SCALE)
            self.dense[name] = torch.tensor(numbers).reshape(shape).requires_grad_()
        self.rows = {}
        for name, dim in tables.items():
            keys = VALUES_PER_FEATURE * num_features
            numbers = formula.values("table " + name, keys * dim, WEIGHT_SCALE)
            self.rows[name] = torch.tensor(numbers).reshape(keys, dim).requires_grad_()

    def pooled(self, table, batch, feature, how="sum"):
        """[n, dim]: the keys of one feature of each example."""
        bags = [self.rows[table][bag] for bag in batch.keys[feature]]
        pool = {"sum": lambda x: x.sum(0), "mean": lambda x: x.mean(0), "max": lambda x: x.max(0)[0]}
        return torch.stack([pool[how](bag) for bag in bags])

    def all_pooled(self, table, batch, features, how="sum"):
        """[n, features, dim]"""
        return torch.stack([self.pooled(table, batch, f, how) for f in features], 1)


def logloss(logits, batch):
    return torch.nn.functional.binary_cross_entropy_with_logits(
        logits[:, 0], batch.labels, reduction="sum"
    )


def record(
    name,
    model,
    tensors,
    forward,
    *,
    numeric=3,
    bags=(1, 1, 1, 1),
    classes=2,
    loss=logloss,
    labels=1,
    special=(),
    items=(),
    added=None,
):
    """Writes NAME.json. `model`: the "model" section of the job, its tables with rule sgd and its
    layers; `tensors`: name -> shape, as hdps lays them out; forward(parameters, batch, training)
    gives the logits [n, 1]; `bags`: the longest bag of each sparse feature; loss(logits, batch): a sum;
    `labels`: how many label columns; `special`: "weight" and "group", if the data has such columns; `items`: the
    features of an item, for losses that compare items; added(parameters, batch): a sum that is in the gradients and
    not in the loss.
    """
    tables = {table["name"]: table["dim"] for table in model.get("tables", [])}
    parameters = Parameters(tensors, tables, len(bags))
    moving = list(parameters.dense.values()) + list(parameters.rows.values())
    losses = []
    for step in range(STEPS):
        batch = Batch(step, numeric, bags, classes)
        total = loss(forward(parameters, batch, True), batch)
        losses.append(total.item() / batch.examples)
        if added:
            total = total + added(parameters, batch)
        gradients = torch.autograd.grad(total / batch.examples, moving, allow_unused=True)
        with torch.no_grad():
            for parameter, gradient in zip(moving, gradients):
                if gradient is not None:
                    parameter -= LEARNING_RATE * gradient
    with torch.no_grad():
        batch = Batch(STEPS, numeric, bags, classes)
        logits = forward(parameters, batch, False)
    found = {
        "job": {"data": data_section(numeric, len(bags), labels, special), "model": model},
        "learning_rate": LEARNING_RATE,
        "weight_scale": WEIGHT_SCALE,
        "examples": EXAMPLES,
        "values_per_feature": VALUES_PER_FEATURE,
        "bags": list(bags),
        "classes": classes,
        "losses": losses,
        "tensors": {key: t.detach().flatten().tolist() for key, t in parameters.dense.items()},
        "rows": {key: t.detach().flatten().tolist() for key, t in parameters.rows.items()},
        "logits": logits.flatten().tolist(),
    }
    if items:
        found["job"]["data"]["item_features"] = list(items)
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".json")
    with open(path, "w") as file:
        json.dump(rounded(found), file, separators=(",", ":"))
        file.write("\n")
    print(f"{path}: loss {losses[0]:.4f} at first, {losses[-1]:.4f} in step {STEPS}")


def rounded(found):
    """Floats with nine digits: enough for 32 bits."""
    if isinstance(found, float):
        return float(f"{found:.9g}")
    if isinstance(found, list):
        return [rounded(value) for value in found]
    if isinstance(found, dict):
        return {key: rounded(value) for key, value in found.items()}
    return found
