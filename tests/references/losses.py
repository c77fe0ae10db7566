"""Losses beside the plain logloss, each over the same small network of embeddings and numbers."""

import torch

import reference

DIM, FEATURES, NUMERIC = 4, 4, 3
functional = torch.nn.functional


def model(outputs=1, **loss):
    return {
        "type": "graph",
        "device": "cpu",
        "tables": [{"name": "t", "dim": DIM}],
        "layers": [
            {"name": "e", "kind": "embedding", "table": "t"},
            {"name": "n", "kind": "numeric"},
            {"name": "x", "kind": "concat", "inputs": ["e", "n"]},
            {"name": "h", "kind": "dense", "inputs": ["x"], "units": 8, "activation": "sigmoid"},
            {"name": "z", "kind": "dense", "inputs": ["h"], "units": outputs},
        ],
        **loss,
    }


def tensors(outputs=1):
    return {
        "h.weight": (DIM * FEATURES + NUMERIC, 8),
        "h.bias": (8,),
        "z.weight": (8, outputs),
        "z.bias": (outputs,),
    }


def forward(p, batch, training):
    embedded = p.all_pooled("t", batch, range(FEATURES)).reshape(batch.examples, -1)
    x = torch.cat([embedded, batch.numeric], 1)
    hidden = torch.sigmoid(x @ p.dense["h.weight"] + p.dense["h.bias"])
    return hidden @ p.dense["z.weight"] + p.dense["z.bias"]


def weighted_logloss(logits, batch):
    return functional.binary_cross_entropy_with_logits(
        logits[:, 0],
        batch.labels,
        weight=batch.weights,
        pos_weight=torch.tensor(3.0),
        reduction="sum",
    )


def squared_error(logits, batch):
    return functional.mse_loss(logits[:, 0], batch.labels, reduction="sum")


def weighted_softmax(logits, batch):
    each = functional.cross_entropy(logits, batch.labels.long(), reduction="none")
    return (batch.weights * each).sum()


def two_tasks(logits, batch):
    first = functional.binary_cross_entropy_with_logits(
        logits[:, 0], batch.task_labels[0], pos_weight=torch.tensor(2.0), reduction="sum"
    )
    second = functional.mse_loss(logits[:, 1], batch.task_labels[1], reduction="sum")
    return first + 0.5 * second


def bpr(logits, batch):
    total = torch.zeros(())
    for i in range(batch.examples):
        others = [
            j
            for j in range(batch.examples)
            if batch.groups[j] == batch.groups[i] and batch.labels[j] == 0
        ]
        if batch.labels[i] == 1 and others:
            apart = logits[i, 0] - logits[others, 0]
            total = total - batch.weights[i] * functional.logsigmoid(apart).mean()
    return total


def record(name, loss, outputs=1, settings={}, **more):
    reference.record(
        name, model(outputs, **settings), tensors(outputs), forward, numeric=NUMERIC, loss=loss, **more
    )


record(
    "loss_weighted_logloss",
    weighted_logloss,
    settings={"positive_weight": 3},
    special=("weight",),
)
record("loss_squared_error", squared_error, settings={"loss": "squared_error"}, classes=5)
record(
    "loss_weighted_softmax",
    weighted_softmax,
    outputs=3,
    settings={"loss": "softmax"},
    classes=3,
    special=("weight",),
)
record(
    "loss_two_tasks",
    two_tasks,
    outputs=2,
    settings={
        "tasks": [
            {"label": "label", "positive_weight": 2},
            {"label": "label1", "loss": "squared_error", "weight": 0.5},
        ]
    },
    labels=2,
)
record("loss_bpr", bpr, settings={"loss": "bpr"}, special=("weight", "group"))
