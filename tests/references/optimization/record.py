#!/usr/bin/python3
"""Records what PyTorch makes of schedules, penalties and clipping, as optimization.json.

  /usr/bin/python3 tests/references/optimization/record.py > tests/references/optimization/optimization.json

needs torch (made with 1.13.1). tests/embedding/optimization_reference_test.cc trains the same
parameters on the same targets and compares. Three tensors, all of whose elements count in every
step; element i of all 34 begins as ((7 i + 3) mod 13 - 6) / 10, and the loss of step t is
  sum over i of (0.5 + (5 i mod 7) / 7) / 2 * (w_i - ((3 i + 5 t) mod 17 - 8) / 8)^2
plus the penalties.
"""
import json
import sys

import torch

SHAPES = [[6, 4], [5, 1], [1, 5]]
STEPS = 50
RECORDED = [1, 10, 25, 50]

SGD = {"kind": "sgd", "learning_rate": 0.1}
ADAM = {"kind": "lazy_adam", "learning_rate": 0.02}
CASES = [
    {"name": "plain", "optimizer": SGD},
    {"name": "warmup", "optimizer": SGD, "schedule": {"kind": "constant", "warmup_steps": 12}},
    {"name": "step", "optimizer": ADAM,
     "schedule": {"kind": "step", "decay_steps": 15, "decay": 0.3}},
    {"name": "exponential", "optimizer": SGD,
     "schedule": {"kind": "exponential", "decay_steps": 20, "decay": 0.25}},
    {"name": "cosine", "optimizer": ADAM,
     "schedule": {"kind": "cosine", "decay_steps": 50, "least": 0.05}},
    {"name": "cosine after warmup", "optimizer": SGD,
     "schedule": {"kind": "cosine", "warmup_steps": 5, "decay_steps": 30}},
    {"name": "polynomial", "optimizer": SGD,
     "schedule": {"kind": "polynomial", "decay_steps": 40, "power": 1.7}},
    {"name": "polynomial after warmup", "optimizer": ADAM,
     "schedule": {"kind": "polynomial", "warmup_steps": 8, "decay_steps": 60, "power": 1}},
    {"name": "l1", "optimizer": SGD, "loss_l1": 0.05},
    {"name": "l2", "optimizer": SGD, "loss_l2": 0.3},
    {"name": "l1 and l2 under adam", "optimizer": ADAM, "loss_l1": 0.02, "loss_l2": 0.1},
    {"name": "l2 beside decoupled decay",
     "optimizer": {"kind": "adamw", "learning_rate": 0.02, "weight_decay": 0.1}, "loss_l2": 0.2},
    {"name": "clip_value", "optimizer": SGD, "clip_value": 0.2},
    {"name": "clip_value under adam", "optimizer": ADAM, "clip_value": 0.1, "loss_l2": 0.1},
    {"name": "clip_norm", "optimizer": SGD, "clip_norm": 1.0},
    {"name": "clip_norm with all", "optimizer": ADAM, "clip_norm": 0.8, "clip_value": 0.3,
     "loss_l1": 0.02, "loss_l2": 0.1,
     "schedule": {"kind": "step", "warmup_steps": 4, "decay_steps": 20, "decay": 0.5}},
]


def rates_of(schedule, base):
    """Learning rates of all steps, by PyTorch's schedulers; after its end the last one stays."""

    def run(make, steps):
        optimizer = torch.optim.SGD([torch.zeros(1)], lr=base)
        scheduler = make(optimizer)
        rates = []
        for _ in range(steps):
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            scheduler.step()
        return rates

    lr = torch.optim.lr_scheduler
    warmup = schedule.get("warmup_steps", 0)
    rates = []
    if warmup > 0:
        rates = run(lambda o: lr.LinearLR(o, 1 / warmup, 1, warmup - 1), warmup)
    kind, steps = schedule["kind"], schedule.get("decay_steps", 1)
    least = base * schedule.get("least", 0)
    left = STEPS - len(rates)
    if kind == "constant":
        return rates + [base] * left
    if kind == "step":
        return rates + run(lambda o: lr.StepLR(o, steps, schedule["decay"]), left)
    if kind == "exponential":
        gamma = schedule["decay"] ** (1 / steps)
        return rates + run(lambda o: lr.ExponentialLR(o, gamma), left)
    if kind == "cosine":  # PyTorch's rises again behind its end.
        rates += run(lambda o: lr.CosineAnnealingLR(o, steps, least), steps + 1)
        return (rates + [rates[-1]] * STEPS)[:STEPS]
    assert kind == "polynomial"
    return rates + run(lambda o: lr.PolynomialLR(o, steps, schedule["power"]), left)


def optimizer_of(spec, parameters):
    kind, rate = spec["kind"], spec["learning_rate"]
    if kind == "sgd":
        return torch.optim.SGD(parameters, lr=rate)
    if kind == "lazy_adam":
        return torch.optim.Adam(parameters, lr=rate)
    assert kind == "adamw"
    return torch.optim.AdamW(parameters, lr=rate, weight_decay=spec["weight_decay"])


def train(case):
    sizes = [rows * dim for rows, dim in SHAPES]
    numbers = torch.arange(sum(sizes))
    begin = ((7 * numbers + 3) % 13 - 6).float() / 10
    curvature = 0.5 + (5 * numbers % 7).float() / 7
    parameters = [torch.nn.Parameter(part.clone()) for part in begin.split(sizes)]
    optimizer = optimizer_of(case["optimizer"], parameters)
    rates = rates_of(case.get("schedule", {"kind": "constant"}),
                     case["optimizer"]["learning_rate"])
    recorded = []
    for step in range(1, STEPS + 1):
        optimizer.param_groups[0]["lr"] = rates[step - 1]
        target = ((3 * numbers + 5 * step) % 17 - 8).float() / 8
        weights = torch.cat([parameter.reshape(-1) for parameter in parameters])
        loss = (curvature / 2 * (weights - target) ** 2).sum()
        loss = loss + case.get("loss_l1", 0) * weights.abs().sum()
        loss = loss + case.get("loss_l2", 0) / 2 * (weights ** 2).sum()
        optimizer.zero_grad()
        loss.backward()
        if "clip_norm" in case:
            torch.nn.utils.clip_grad_norm_(parameters, case["clip_norm"])
        if "clip_value" in case:
            torch.nn.utils.clip_grad_value_(parameters, case["clip_value"])
        optimizer.step()
        if step in RECORDED:
            flat = torch.cat([parameter.detach().reshape(-1) for parameter in parameters])
            recorded.append([round(value, 8) for value in flat.tolist()])
    return recorded


def main():
    for case in CASES:
        case["weights"] = train(case)
    whole = {"torch": torch.__version__, "shapes": SHAPES, "steps": RECORDED, "cases": CASES}
    json.dump(whole, sys.stdout)
    print()


if __name__ == "__main__":
    main()
