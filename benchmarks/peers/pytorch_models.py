#!/usr/bin/env python3
"""Trains one of the models beyond Wide&Deep with PyTorch tuned for the full speed of the CPU, and prints a line of
JSON.

Rows, loss and optimizers are those of pytorch_tuned.py. Products are as few and as large as the formulas allow:
projections of one input are one product, and what belongs to an example is computed once and not once a position.
With TORCH_COMPILE_DISABLE=1, which PyTorch reads itself, the same runs uncompiled.
"""
import functools

import pytorch_tuned  # Sets what PyTorch reads on import.

import torch
from torch.nn import functional

import cases
import pytorch_runs


def matrix(*shape):
    """Returns weights for products with the second dimension from the end."""
    return torch.nn.Parameter(torch.randn(*shape) / shape[-2] ** 0.5)


class Attention(torch.nn.Module):
    """One self-attention of AutoInt, over vectors [examples, keys, dim]."""

    def __init__(self, dim, heads, units):
        super().__init__()
        self.heads, self.units = heads, units
        self.projections = torch.nn.Linear(dim, 4 * heads * units, bias=False)

    def forward(self, vectors):
        query, key, value, residual = self.projections(vectors).chunk(4, dim=-1)
        query, key, value = (part.unflatten(-1, (self.heads, self.units)).transpose(1, 2)
                             for part in (query, key, value))
        seen = functional.scaled_dot_product_attention(query, key, value, scale=1.0)
        return functional.relu(seen.transpose(1, 2).flatten(2) + residual)


class AutoInt(torch.nn.Module):
    def __init__(self, case):
        super().__init__()
        heads, units = case.model["attention_heads"], case.model["attention_units"]
        dims = [case.dim] + [heads * units] * case.model["attention_layers"]
        self.attentions = torch.nn.Sequential(*(Attention(dim, heads, units) for dim in dims[:-1]))
        self.logit = torch.nn.Linear(case.keys * dims[-1], 1)
        self.mlp = pytorch_runs.mlp_of(case)

    def forward(self, deep, numbers):
        seen = self.attentions(deep).flatten(1)
        return self.logit(seen) + self.mlp(torch.cat([deep.flatten(1), numbers], dim=1))


class XDeepFm(torch.nn.Module):
    """Components are treated as examples, so that a level is one product."""

    def __init__(self, case):
        super().__init__()
        self.maps, levels = case.model["cin_maps"], case.model["cin_levels"]
        inputs = [case.keys] + [self.maps // 2] * (levels - 1)
        self.levels = torch.nn.ParameterList(matrix(before * case.keys, self.maps) for before in inputs)
        self.logit = torch.nn.Linear((levels - 1) * (self.maps // 2) + self.maps, 1)
        self.mlp = pytorch_runs.mlp_of(case)

    def forward(self, deep, numbers):
        first = before = deep.transpose(1, 2)
        out = []
        for level, weights in enumerate(self.levels):
            products = before.unsqueeze(3) * first.unsqueeze(2)
            maps = products.flatten(2) @ weights
            onward = 0 if level + 1 == len(self.levels) else self.maps // 2
            before = maps[:, :, :onward]
            out.append(maps[:, :, onward:].sum(dim=1))
        return self.logit(torch.cat(out, dim=1)) + self.mlp(torch.cat([deep.flatten(1), numbers], dim=1))


class Pairs(torch.nn.Module):
    """The products (v_f W_f) * v_g of all pairs f < g."""

    def __init__(self, keys, dim):
        super().__init__()
        self.weights = matrix(keys, dim, dim)
        self.first, self.second = torch.triu_indices(keys, keys, offset=1)

    def forward(self, vectors):
        turned = torch.bmm(vectors.transpose(0, 1), self.weights).transpose(0, 1)
        return (turned[:, self.first] * vectors[:, self.second]).flatten(1)


class FiBiNet(torch.nn.Module):
    def __init__(self, case):
        super().__init__()
        reduced = case.keys // case.model["senet_reduction"]
        self.senet = torch.nn.Sequential(torch.nn.Linear(case.keys, reduced), torch.nn.ReLU(),
                                         torch.nn.Linear(reduced, case.keys), torch.nn.ReLU())
        self.pairs, self.senet_pairs = Pairs(case.keys, case.dim), Pairs(case.keys, case.dim)
        columns = case.keys * (case.keys - 1) * case.dim + case.numbers
        self.mlp = pytorch_runs.layers_of(columns, case.hidden)

    def forward(self, deep, numbers):
        scaled = deep * self.senet(deep.mean(dim=2)).unsqueeze(2)
        return self.mlp(torch.cat([self.pairs(deep), self.senet_pairs(scaled), numbers], dim=1))


class Cross(torch.nn.Module):
    """A cross layer of DCN-v2."""

    def __init__(self, columns, _model):
        super().__init__()
        self.product = torch.nn.Linear(columns, columns)

    def forward(self, first, x):
        return torch.addcmul(x, first, self.product(x))


class CrossMix(torch.nn.Module):
    """A cross layer of DCN-Mix. Gates, which add up to 1, weigh the experts before the last product."""

    def __init__(self, columns, model):
        super().__init__()
        self.experts, rank = model["cross_experts"], model["cross_rank"]
        self.down = matrix(columns, self.experts * rank)
        self.inner = matrix(self.experts, rank, rank)
        self.up = torch.nn.Linear(self.experts * rank, columns)
        self.gates = torch.nn.Linear(columns, self.experts, bias=False)

    def forward(self, first, x):
        low = torch.tanh(x @ self.down).unflatten(1, (self.experts, -1)).transpose(0, 1)
        low = torch.tanh(torch.bmm(low, self.inner)).transpose(0, 1)
        gates = torch.softmax(self.gates(x), dim=1).unsqueeze(2)
        return torch.addcmul(x, first, self.up((low * gates).flatten(1)))


class CrossNetwork(torch.nn.Module):
    """Cross layers beside an MLP."""

    def __init__(self, case, layer_of):
        super().__init__()
        columns = case.numbers + case.keys * case.dim
        self.layers = torch.nn.ModuleList(layer_of(columns, case.model)
                                          for _ in range(case.model["cross_layers"]))
        self.hidden = pytorch_runs.mlp_of(case)[:-1]
        self.logit = torch.nn.Linear(columns + case.hidden[-1], 1)

    def forward(self, deep, numbers):
        x = first = torch.cat([deep.flatten(1), numbers], dim=1)
        for layer in self.layers:
            x = layer(first, x)
        return self.logit(torch.cat([x, self.hidden(first)], dim=1))


class Din(torch.nn.Module):
    """The attention unit's layer is applied in parts: [k, q, k - q, k * q] W is k (W1 + W3) + (k * q) W4, of each item,
    and q (W2 - W3), of the example. The first of the numbers are 1 where the history has an item and else 0."""

    def __init__(self, case):
        super().__init__()
        self.history = case.history
        self.weights = matrix(4 * case.dim, case.model["attention_hidden"])
        self.bias = torch.nn.Parameter(torch.zeros(case.model["attention_hidden"]))
        self.score = torch.nn.Linear(case.model["attention_hidden"], 1)
        torch.nn.init.ones_(self.score.bias)  # As hdps: at first the sum of the items.
        self.mlp = pytorch_runs.layers_of(case.numbers + (case.keys + 1) * case.dim, case.hidden)

    def forward(self, deep, numbers):
        is_there, numbers = numbers.split([self.history, numbers.shape[1] - self.history], dim=1)
        items, target = deep[:, :self.history], deep[:, self.history]
        of_item, of_target, of_difference, of_product = self.weights.chunk(4)
        hidden = torch.cat([items, items * target.unsqueeze(1)], dim=2) @ torch.cat(
            [of_item + of_difference, of_product])
        of_example = torch.addmm(self.bias, target, of_target - of_difference)
        scores = self.score(torch.sigmoid(hidden + of_example.unsqueeze(1)))
        interest = (scores * is_there.unsqueeze(2) * items).sum(dim=1)
        return self.mlp(torch.cat([interest, deep[:, self.history:].flatten(1), numbers], dim=1))


MODELS = {"autoint": AutoInt, "xdeepfm": XDeepFm, "fibinet": FiBiNet, "din": Din,
          "dcn_v2": functools.partial(CrossNetwork, layer_of=Cross),
          "dcn_mix": functools.partial(CrossNetwork, layer_of=CrossMix)}


class Model(torch.nn.Module):
    """From the inputs of pytorch_tuned.Dense to logits."""

    def __init__(self, case):
        super().__init__()
        self.model = MODELS[case.name](case)
        self.wide_numbers = torch.nn.Linear(case.numbers, 1) if case.wide else None

    def forward(self, deep, wide, numbers):
        logit = self.model(deep, numbers)
        if wide is not None:
            logit = logit + wide + self.wide_numbers(numbers)
        return logit.squeeze(1)


class ModelTrainer(pytorch_tuned.TunedTrainer):
    def __init__(self, case, precision):
        super().__init__(case, precision, dense_of=Model)
        self.history, self.nothing = case.history, case.keys * case.vocabulary

    def with_places(self, keys, numbers):
        """Puts before the numbers which items of the history there are."""
        if not self.history:
            return numbers
        return torch.cat([(keys[:, :self.history] != self.nothing).float(), numbers], dim=1)

    def step(self, keys, numbers, labels):
        super().step(keys, self.with_places(keys, numbers), labels)

    def scores(self, keys, numbers):
        return super().scores(keys, self.with_places(keys, numbers))


if __name__ == "__main__":
    pytorch_runs.main(__doc__, ModelTrainer, {"cpu": ["fp32"]}, of=cases.MODELS)
