"""Trains Wide&Deep and DLRM three times from the same weights and batches: as a job of hdps, in PyTorch over hdps'
tables, and in PyTorch with tables of its own. After 50 steps all parameters are within 1e-5 of each other."""
import importlib.util
import json
import random
import unittest

import harness

why = "".join(f"there is no {name}; " for name in ("hdps", "numpy", "torch") if not importlib.util.find_spec(name))
if not why:
    import hdps
    import hdps.torch
    import numpy
    import torch

TOLERANCE = 1e-5
STEPS, BATCH, NUMBERS, FEATURES, VALUES, DIM = 50, 64, 3, 4, 30, 8
OPTIMIZERS = {
    "sgd": {"learning_rate": 0.1},
    "adagrad": {"learning_rate": 0.05, "initial_accumulator": 0.1, "epsilon": 1e-10},
    "rowwise_adagrad": {"learning_rate": 0.05, "initial_accumulator": 0.1, "epsilon": 1e-10},
    "lazy_adam": {"learning_rate": 0.001, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8},
    "ftrl": {"learning_rate": 0.1, "l1": 0.001, "l2": 0.001, "initial_accumulator": 0.1}}
DENSE = {"kind": "sgd", "learning_rate": 0.1}
NORMAL = {"kind": "normal", "scale": 0.05}
STILL = {"kind": "sgd", "learning_rate": 0}


def columns():
    """The rows of all steps, in their order. A few values of each column are frequent."""
    draw = random.Random(37)
    made = {"label": [draw.randrange(2) for _ in range(STEPS * BATCH)]}
    for i in range(NUMBERS):
        made[f"N{i}"] = [draw.randrange(-8, 9) / 8 for _ in range(STEPS * BATCH)]
    for i in range(FEATURES):
        made[f"C{i}"] = [min(draw.randrange(VALUES), draw.randrange(VALUES)) for _ in range(STEPS * BATCH)]
    return made


def tables_of(model, rows):
    """The job's tables in the order of the recipe: initial rows depend on it."""
    tables = [{"name": "wide", "dim": 1, "optimizer": rows, "init": {"kind": "zeros"}}] if model == "wide_deep" else []
    return [*tables, {"name": "deep", "dim": DIM, "optimizer": rows, "init": NORMAL}]


def recipe_job(model, rows, dense):
    recipe = {"type": model, "embedding_dim": DIM, "hidden": [16, 8], "device": "cpu", "embedding_init": NORMAL,
              "deep_optimizer": rows, "dense_optimizer": dense}
    recipe.update({"wide_optimizer": rows} if model == "wide_deep" else {"bottom_hidden": [16]})
    return {"name": model, "seed": 7, "model": recipe, "train": {"batch_size": BATCH, "epochs": 1},
            "parallel": {"gradients_mean": True},
            "data": {"format": "csv", "shuffle_rows": 0, "columns": [
                {"name": "label", "type": "label"}, *[{"name": f"N{i}", "type": "numeric"} for i in range(NUMBERS)],
                *[{"name": f"C{i}"} for i in range(FEATURES)]]}}


def tensors_of(folder):
    """The tensors of a safetensors file; keys as unsigned numbers."""
    content = (folder / "model.safetensors").read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    tensors = {}
    for name, about in json.loads(content[8:begin]).items():
        if name != "__metadata__":
            first, end = about["data_offsets"]
            kind = numpy.uint64 if about["dtype"] == "I64" else numpy.float32
            tensors[name] = numpy.frombuffer(content[begin + first:begin + end], kind).reshape(about["shape"])
    return tensors


if not why:
    def linear(tensors, name):
        weight = torch.tensor(tensors[f"{name}.weight"].T)
        made = torch.nn.Linear(weight.shape[1], weight.shape[0])
        made.load_state_dict({"weight": weight, "bias": torch.tensor(tensors[f"{name}.bias"])})
        return made

    def mlp(tensors, *names):
        return torch.nn.Sequential(*[part for name in names for part in (linear(tensors, name), torch.nn.ReLU())])

    class WideDeep(torch.nn.Module):
        def __init__(self, tensors):
            super().__init__()
            self.wide_numbers = linear(tensors, "wide_numeric")
            self.bias = torch.nn.Parameter(torch.tensor(tensors["wide_bias.bias"]))
            self.deep, self.logit = mlp(tensors, "deep1", "deep2"), linear(tensors, "deep_logit")
            self.linears = {"wide_numeric": self.wide_numbers, "deep1": self.deep[0], "deep2": self.deep[2],
                            "deep_logit": self.logit}

        def forward(self, wide, deep, numbers):
            hidden = self.deep(torch.cat([deep.flatten(1), numbers], 1))
            return wide + self.wide_numbers(numbers) + self.bias + self.logit(hidden)

    class Dlrm(torch.nn.Module):
        def __init__(self, tensors):
            super().__init__()
            self.bottom, self.top = mlp(tensors, "bottom1", "bottom"), mlp(tensors, "top1", "top2")
            self.logit = linear(tensors, "logit")
            self.linears = {"bottom1": self.bottom[0], "bottom": self.bottom[2], "top1": self.top[0],
                            "top2": self.top[2], "logit": self.logit}

        def forward(self, _, deep, numbers):
            bottom = self.bottom(numbers)
            vectors = torch.cat([bottom.unsqueeze(1), deep], 1)
            of, with_one = torch.tril_indices(FEATURES + 1, FEATURES + 1, -1)
            dots = torch.bmm(vectors, vectors.transpose(1, 2))[:, of, with_one]
            return self.logit(self.top(torch.cat([bottom, dots], 1)))

    class OwnRows:
        """nn.EmbeddingBag with sparse gradients, and the formulas of docs/job_file.md where PyTorch has none."""

        def __init__(self, tensors, kind, settings):
            self.kind, self.settings, self.step_number, self.bags, self.state = kind, settings, 0, {}, {}
            for name in ("wide", "deep"):
                if f"{name}.keys" in tensors:
                    self.keys = tensors[f"{name}.keys"]
                    self.bags[name] = torch.nn.EmbeddingBag.from_pretrained(
                        torch.tensor(tensors[f"{name}.weights"]), freeze=False, mode="sum", sparse=True)
            weights = [bag.weight for bag in self.bags.values()]
            rate, more = settings["learning_rate"], settings.get("initial_accumulator", 0)
            self.optimizer = {
                "sgd": lambda: torch.optim.SGD(weights, lr=rate),
                "adagrad": lambda: torch.optim.Adagrad(weights, lr=rate, initial_accumulator_value=more, eps=1e-10),
            }.get(kind, lambda: None)()
            for name, bag in self.bags.items():
                rows, dim = bag.weight.shape
                self.state[name] = {"rowwise_adagrad": [torch.full((rows, 1), more)],
                                    "lazy_adam": [torch.zeros(rows, dim), torch.zeros(rows, dim)],
                                    "ftrl": [torch.zeros(rows, dim), torch.full((rows, dim), more)]}.get(kind)

        def __call__(self, keys):
            at = torch.from_numpy(numpy.searchsorted(self.keys, keys))
            wide = self.bags["wide"](at) if "wide" in self.bags else None
            return wide, self.bags["deep"](at.reshape(-1, 1)).reshape(*at.shape, DIM)

        def step(self, _):
            self.step_number += 1
            if self.optimizer is not None:
                self.optimizer.step()
            for name, bag in self.bags.items():
                if self.optimizer is None:
                    gradient = bag.weight.grad.coalesce()
                    self.update(bag.weight.data, self.state[name], gradient.indices()[0], gradient.values())
                bag.weight.grad = None

        def update(self, weights, state, rows, g):
            s, old = self.settings, weights[rows]
            if self.kind == "rowwise_adagrad":
                state[0][rows] += (g * g).mean(1, keepdim=True)
                weights[rows] = old - s["learning_rate"] / (state[0][rows].sqrt() + s["epsilon"]) * g
            elif self.kind == "lazy_adam":
                for kept, decay, new in ((state[0], s["beta1"], g), (state[1], s["beta2"], g * g)):
                    kept[rows] = decay * kept[rows] + (1 - decay) * new
                mean, square = (kept[rows] / (1 - decay**self.step_number)
                                for kept, decay in ((state[0], s["beta1"]), (state[1], s["beta2"])))
                weights[rows] = old - s["learning_rate"] * mean / (square.sqrt() + s["epsilon"])
            else:
                before = state[1][rows].sqrt()
                state[1][rows] += g * g
                after = state[1][rows].sqrt()
                state[0][rows] += g - (after - before) / s["learning_rate"] * old
                z = state[0][rows]
                size = (z.abs() - s["l1"]).clamp(min=0) / (after / s["learning_rate"] + s["l2"])
                weights[rows] = -z.sign() * size

        def rows(self):
            return {name: bag.weight.detach().numpy() for name, bag in self.bags.items()}

    class ServersRows:
        """Rows of the job's tables at servers."""

        def __init__(self, worker, keys):
            self.worker, self.keys = worker, keys
            self.wide = hdps.torch.EmbeddingBag(worker, "wide", mode="sum") if "wide" in worker.tables else None
            self.deep = hdps.torch.Embedding(worker, "deep")

        def __call__(self, keys):
            keys = torch.from_numpy(keys.view(numpy.int64))
            return None if self.wide is None else self.wide(keys), self.deep(keys)

        def step(self, examples):
            self.worker.advance(examples)

        def rows(self):
            def of(name):
                pulled = self.worker.pull(name, self.keys, train=False)
                return numpy.asarray(pulled.rows)[numpy.asarray(pulled.positions)]
            return {name: of(name) for name in self.worker.tables if name in ("wide", "deep")}

    def trained(model, rows, batches):
        """Trains, and returns all parameters as hdps names them."""
        optimizer = torch.optim.SGD(model.parameters(), lr=DENSE["learning_rate"])
        for keys, numbers, labels in batches:
            optimizer.zero_grad()
            logits = model(*rows(keys), numbers)[:, 0]
            torch.nn.functional.binary_cross_entropy_with_logits(logits, labels).backward()
            optimizer.step()
            rows.step(len(labels))
        found = {f"{name}.weights": values for name, values in rows.rows().items()}
        for name, layer in model.linears.items():
            found[f"{name}.weight"] = layer.weight.detach().numpy().T
            found[f"{name}.bias"] = layer.bias.detach().numpy()
        if isinstance(model, WideDeep):
            found["wide_bias.bias"] = model.bias.detach().numpy()
        return found


@unittest.skipIf(why, why)
class Models(harness.Case):
    def by_hdps(self, name, job):
        """Runs a job of a recipe; returns its tensors at the end."""
        hdps.train(job, self.out(name), train=columns(), threads=1, quiet=True)
        hdps.export(self.out(name), self.out(f"{name}.export"), format="safetensors")
        return tensors_of(self.out(f"{name}.export"))

    def batches(self, run, keys):
        """Each step's keys as hdps makes them, numbers and labels."""
        rows = columns()
        model = hdps.Model.open(self.out(run))
        found = numpy.stack([numpy.asarray(model.keys(f"C{i}", rows[f"C{i}"])) for i in range(FEATURES)], 1)
        self.assertEqual(set(found.flatten().tolist()), set(keys.tolist()))
        numbers = torch.tensor([rows[f"N{i}"] for i in range(NUMBERS)]).T.contiguous()
        labels = torch.tensor(rows["label"], dtype=torch.float32)
        return [(found[at:at + BATCH], numbers[at:at + BATCH], labels[at:at + BATCH])
                for at in range(0, STEPS * BATCH, BATCH)]

    def apart(self, one, other):
        """The largest difference of a parameter, after the names are known to be the same."""
        self.assertEqual(set(one), set(other))
        return max(float(numpy.abs(one[name] - other[name]).max()) for name in one)

    def compare(self, model, module):
        # Without a rate nothing moves: the weights that all of them begin with, and a row for each key.
        began = self.by_hdps("began", recipe_job(model, STILL, STILL))
        batches = self.batches("began", began["deep.keys"])
        far = {}
        for kind, settings in OPTIMIZERS.items():
            with self.subTest(model=model, optimizer=kind):
                rows = {"kind": kind, **settings}
                ours = self.by_hdps(kind, recipe_job(model, rows, DENSE))
                numpy.testing.assert_array_equal(ours["deep.keys"], began["deep.keys"])
                ours = {name: values for name, values in ours.items() if not name.endswith(".keys")}
                self.assertGreater(self.apart(ours, {name: began[name] for name in ours}), 0.01, "it has learned")
                alone = trained(module(began), OwnRows(began, kind, settings), batches)
                job = {"name": model, "seed": 7, "model": {"type": "tables", "tables": tables_of(model, rows)}}
                with hdps.local(job, self.out(f"{kind}.tables"), servers=2, threads=1, quiet=True) as worker:
                    over = trained(module(began), ServersRows(worker, began["deep.keys"]), batches)
                far[kind] = (self.apart(over, ours), self.apart(over, alone))
                self.assertLess(max(far[kind]), TOLERANCE, far)
        harness.figure(f"{model} after {STEPS} steps in PyTorch over hdps' tables, the largest difference of a "
                       "parameter from hdps' own model and from PyTorch alone: " +
                       ", ".join(f"{kind} {a:.1e} and {b:.1e}" for kind, (a, b) in far.items()))

    def test_wide_deep(self):
        self.compare("wide_deep", WideDeep)

    def test_dlrm(self):
        self.compare("dlrm", Dlrm)


if __name__ == "__main__":
    harness.main()
