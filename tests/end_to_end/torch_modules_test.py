"""hdps.torch beside torch's own modules and optimizers: the same numbers, in every form of call."""
import contextlib
import importlib.util
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import unittest
import unittest.mock
import warnings

import harness

why = "" if importlib.util.find_spec("hdps") else "the Python package was not built: no pybind11 or Python's headers"
why = why or ("" if importlib.util.find_spec("torch") else "no PyTorch here")
if not why:
    import torch

    import hdps
    import hdps.torch as ht

MODES = ("sum", "mean", "max")
RATE = 0.05
OPTIMIZERS = {  # Of a table, and the same of torch.
    "sgd": {"kind": "sgd", "learning_rate": RATE},
    "adagrad": {"kind": "adagrad", "learning_rate": RATE, "initial_accumulator": 0.1, "epsilon": 1e-10},
    "lazy_adam": {"kind": "lazy_adam", "learning_rate": RATE, "epsilon": 1e-8}}
VOCABULARY, DIM, STEPS = 20, 3, 6
# Each step rounds at most 16 times, sums of a row's gradients included, numbers below 4.
BOUND = STEPS * 16 * 4 * 2.0**-24


def torchs_optimizer(kind, parameters):
    if kind == "sgd":
        return torch.optim.SGD(parameters, lr=RATE)
    if kind == "adagrad":
        return torch.optim.Adagrad(parameters, lr=RATE, initial_accumulator_value=0.1, eps=1e-10)
    return torch.optim.SparseAdam(list(parameters), lr=RATE, eps=1e-8)


def call_forms():
    """Arguments of a call for bags of each form, and those of the constructor; same bags, drawn anew."""
    keys = torch.randint(VOCABULARY, (12,))
    return {
        "rows of a matrix": ({}, (keys.view(4, 3),)),
        "offsets": ({}, (keys, torch.tensor([0, 3, 3, 7]))),
        "last offset": ({"include_last_offset": True}, (keys, torch.tensor([0, 3, 3, 7, 12]))),
        "padding": ({"padding_idx": 4}, (torch.where(keys < 8, 4, keys), torch.tensor([0, 3, 3, 7]))),
        "padding in a matrix": ({"padding_idx": 4}, (torch.where(keys < 8, 4, keys).view(4, 3),)),
        "int32": ({}, (keys.int().view(4, 3),))}


class KeyedJaggedTensor:
    """The reading methods of TorchRec's."""

    def __init__(self, keys, values, lengths, weights=None):
        self.keys, self.values, self.lengths = lambda: keys, lambda: values, lambda: lengths
        self.weights_or_none = lambda: weights


def in_threads(workers, body):
    """Runs body(worker) on a thread for each worker, and raises what one of them raised."""
    raised = []

    def run(worker):
        try:
            with worker:
                body(worker)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def dense_model(seed):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(DIM, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))


@unittest.skipIf(why, why)
class Modules(harness.Case):
    def setUp(self):
        super().setUp()
        torch.manual_seed(7)

    def local(self, tables, name="run", sets=None, **kwargs):
        """Joins a job with these tables: their optimizers by name."""
        job = {"seed": 3, "model": {"type": "tables", "tables": [
            {"name": table, "dim": DIM, "optimizer": OPTIMIZERS[kind], "init": {"kind": "normal", "scale": 0.5}}
            for table, kind in tables.items()]}}
        return hdps.local(job, self.out(name), set=sets or {}, quiet=True, **kwargs)

    def rows(self, worker, table, keys=None):
        """The rows as the next step finds them."""
        keys = torch.arange(VOCABULARY) if keys is None else keys
        pulled = worker.pull(table, keys)
        return torch.from_dlpack(pulled.rows)[torch.from_dlpack(pulled.positions)]

    def assert_near(self, ours, theirs, bound=BOUND):
        self.assertEqual(ours.shape, theirs.shape)
        self.assertLessEqual((ours - theirs).abs().max().item(), bound)

    def test_bags_and_their_gradients(self):
        tables = {f"{mode}_{kind}": kind for mode in MODES for kind in OPTIMIZERS}
        with self.local(tables, servers=2) as worker:
            weights = {t: self.rows(worker, t).requires_grad_() for t in tables}
            optimizers = {t: torchs_optimizer(kind, [weights[t]]) for t, kind in tables.items()}
            for form in list(call_forms()):
                with worker.step():
                    for table in tables:
                        mode = table.split("_")[0]
                        options, arguments = call_forms()[form]
                        ours = ht.EmbeddingBag(worker, table, mode, **options)(*arguments)
                        reference = torch.nn.EmbeddingBag(VOCABULARY, DIM, mode=mode, sparse=mode != "max",
                                                          _weight=weights[table].detach(), **options)
                        reference.weight = torch.nn.Parameter(weights[table].detach())
                        theirs = reference(*arguments)
                        with self.subTest(form=form, table=table):
                            self.assert_near(ours.detach(), theirs.detach())
                        factors = torch.randn(ours.shape)
                        (ours * factors).sum().backward()
                        (theirs * factors).sum().backward()
                        gradient = reference.weight.grad
                        if "adam" in table and not gradient.is_sparse:  # It takes those of the keys in the step.
                            met = arguments[0].unique().long()
                            met = met[met != options.get("padding_idx", -1)]
                            gradient = torch.sparse_coo_tensor(met[None], gradient[met], gradient.shape)
                        weights[table].grad = gradient
                        optimizers[table].step()
            for table in tables:
                with self.subTest(table=table):
                    self.assert_near(self.rows(worker, table), weights[table].detach())

    def test_weights_of_keys(self):
        with self.local({"words": "sgd"}) as worker:
            weight = self.rows(worker, "words").requires_grad_()
            keys, offsets = torch.randint(VOCABULARY, (9,)), torch.tensor([0, 4, 4, 6])
            ours, theirs = (torch.rand(9).requires_grad_() for _ in range(2))
            theirs.data.copy_(ours.data)
            with worker.step():
                found = ht.EmbeddingBag(worker, "words", padding_idx=int(keys[0]))(keys, offsets, ours)
                expected = torch.nn.functional.embedding_bag(keys, weight, offsets, mode="sum",
                                                             per_sample_weights=theirs, padding_idx=int(keys[0]))
                self.assert_near(found.detach(), expected.detach())
                found.square().sum().backward()
                expected.square().sum().backward()
            self.assert_near(ours.grad, theirs.grad)
            self.assert_near(self.rows(worker, "words"), weight.detach() - RATE * weight.grad)

    def test_embedding_of_any_shape(self):
        with self.local({"words": "sgd"}) as worker:
            weight = self.rows(worker, "words")
            reference = torch.nn.Embedding(VOCABULARY, DIM, padding_idx=2, _weight=weight.clone())
            ours = ht.Embedding(worker, "words", padding_idx=2)
            keys = torch.randint(VOCABULARY, (2, 3, 4))
            keys[0, 0, 0] = 2
            weight[2] = reference.weight.data[2] = 0  # Padding reads as zeros here.
            with worker.step():
                found, expected = ours(keys), reference(keys)
                self.assertTrue(torch.equal(found, expected))
                found.square().sum().backward()
                expected.square().sum().backward()
            after = self.rows(worker, "words")
            after[2] = 0
            self.assert_near(after, weight - RATE * reference.weight.grad)
            self.assertEqual(ours(torch.tensor(5)).shape, (DIM,))
            self.assertEqual(ours(torch.zeros(0, 2, dtype=torch.long)).shape, (0, 2, DIM))
            # A key is 64 bits, and the servers know no greatest one.
            far = torch.tensor([-1, 2**63 - 1, -1])
            self.assertEqual(sorted(worker.pull("words", far).keys.tolist()), [2**63 - 1, 2**64 - 1])
            self.assertTrue(torch.equal(ours(far)[0], ours(far)[2]))

    def test_a_collection(self):
        tables = {"f": "words", "g": "places", "h": "words"}
        values = torch.tensor([1, 2, 3, 9, 8, 1, 1, 5])
        lengths = torch.tensor([2, 1, 1, 1, 0, 3])
        with self.local({"words": "sgd", "places": "sgd"}) as worker:
            ours = ht.EmbeddingBagCollection(worker, tables)
            before = {table: self.rows(worker, table) for table in ("words", "places")}
            with worker.step(), unittest.mock.patch.object(worker, "pull", wraps=worker.pull) as pull:
                found = ours(values, lengths)
                self.assertEqual(pull.call_count, 1)
                self.assertEqual(worker.examples, 2)
                self.assertEqual(found.keys(), ["f", "g", "h"])
                self.assertEqual(list(found), list(found.to_dict()))
                self.assertTrue(torch.equal(found.values(), torch.cat([found[f] for f in tables], 1)))
                parts = {"f": ([[1, 2], [3]]), "g": [[9], [8]], "h": [[], [1, 1, 5]]}
                weights = {table: rows.clone().requires_grad_() for table, rows in before.items()}
                for feature, bags in parts.items():
                    expected = torch.stack([weights[tables[feature]][torch.tensor(b, dtype=torch.long)].sum(0)
                                            for b in bags])
                    self.assert_near(found[feature].detach(), expected.detach())
                    (expected * (1 + ord(feature))).sum().backward()
                torch.stack([found[feature] * (1 + ord(feature)) for feature in tables]).sum().backward()
            for table, rows in before.items():  # Gradients below 512: eight roundings of numbers below 128.
                self.assert_near(self.rows(worker, table), rows - RATE * weights[table].grad, 128 * 2.0**-21)
            self.check_forms(worker, ours, values, lengths)

    def check_forms(self, worker, ours, values, lengths):
        with torch.no_grad():
            found = ours(values, lengths)
            # Features in another order, and one that the collection does not have.
            swapped = torch.cat([values[3:5], values[5:], torch.tensor([7]), values[:3]])
            names, counts = ["g", "h", "other", "f"], torch.tensor([1, 1, 0, 3, 0, 1, 2, 1])
            for again in (ours(swapped, counts, names), ours(KeyedJaggedTensor(names, swapped, counts)),
                          ours(swapped, counts.view(4, 2).int(), names),
                          ours(KeyedJaggedTensor(names, swapped, counts, torch.ones(9)))):
                self.assertTrue(torch.equal(again.values(), found.values()))
            twice = ours(values, lengths, weights=torch.full((8,), 2.0))
            self.assertTrue(torch.equal(twice.values(), 2 * found.values()))
            self.assertEqual(ours(values[:0], torch.zeros(0)[:0].long())["f"].shape, (0, DIM))
            mean = ht.EmbeddingBagCollection(worker, {"f": "words"}, "mean")(values[:3], lengths[:2])
            self.assertTrue(torch.equal(mean["f"][0], found["f"][0] / 2))

    def test_evaluation_makes_no_rows(self):
        with self.local({"words": "sgd"}) as worker:
            bag = ht.EmbeddingBag(worker, "words")
            keys = torch.tensor([[1, 2]])
            with worker.step(), unittest.mock.patch.object(worker, "pull", wraps=worker.pull) as pull:
                with torch.no_grad():
                    bag(keys)
                bag.eval()
                self.assertFalse(bag(keys).requires_grad)
                bag.train()
                self.assertIsNone(worker.examples)
                self.assertTrue(bag(keys).requires_grad)
            self.assertEqual([call.kwargs["train"] for call in pull.call_args_list], [False, False, True])

    def test_outputs_follow_the_module(self):
        with self.local({"words": "sgd"}) as worker:
            model = torch.nn.Sequential(ht.EmbeddingBag(worker, "words")).double()
            self.assertEqual(list(model.parameters()), [])
            self.assertEqual(list(model.state_dict()), [])
            before = self.rows(worker, "words", torch.tensor([1, 2]))
            with worker.step():
                found = model(torch.tensor([[1, 2, 1]]))
                self.assertEqual(found.dtype, torch.float64)
                found.sum().backward()
            after = self.rows(worker, "words", torch.tensor([1, 2]))
            self.assert_near(after, before - RATE * torch.tensor([[2.0], [1.0]]))
            self.assertEqual(repr(model[0]), "EmbeddingBag('words', dim=3, mode='sum')")

    def test_rows_asked_ahead_are_the_same(self):
        digests = []
        for ahead in (False, True):
            with self.local({"words": "adagrad", "places": "sgd"}, name=f"ahead_{ahead}", servers=2) as worker:
                torch.manual_seed(1)
                bag = ht.EmbeddingBag(worker, "words", padding_idx=3)
                items = ht.Embedding(worker, "places", padding_idx=3)
                both = ht.EmbeddingBagCollection(worker, {"f": "words", "g": "places"})
                batches = torch.randint(VOCABULARY, (4, 2, 5))
                lengths = torch.tensor([2, 3, 1, 4])
                for step, keys in enumerate(batches):
                    with worker.step():
                        outputs = [bag(keys), items(keys).sum(1), both(keys.reshape(-1), lengths).values()]
                        if ahead and step + 1 < len(batches):
                            coming = batches[step + 1]
                            bag.prefetch(coming)
                            items.prefetch(coming)
                            both.prefetch(coming.reshape(-1), lengths)
                        torch.cat(outputs, 1).square().mean().backward()
                digests.append([self.rows(worker, table) for table in ("words", "places")])
        for plain, ahead in zip(*digests):
            self.assertTrue(torch.equal(plain, ahead))

    def test_workers_of_unequal_batches(self):
        """Two workers with 3 and 5 examples, one with all, and torch alone."""
        keys = torch.randint(VOCABULARY, (STEPS, 8, 2))
        found = []
        for parts in ([slice(0, 3), slice(3, 8)], [slice(0, 8)]):
            def body(worker):
                bag = ht.EmbeddingBag(worker, "words", "mean")
                for batch in keys:
                    with worker.step():
                        bag(batch[parts[worker.rank]]).square().sum(1).mean().backward()
                if worker.rank == 0:
                    found.append(self.rows(worker, "words"))

            in_threads(self.local({"words": "adagrad"}, f"of_{len(parts)}", servers=2, workers=len(parts)), body)
        with self.local({"words": "adagrad"}, "first") as worker:
            weight = self.rows(worker, "words").requires_grad_()
        optimizer = torchs_optimizer("adagrad", [weight])
        for batch in keys:
            optimizer.zero_grad()
            torch.nn.functional.embedding_bag(batch, weight, mode="mean").square().sum(1).mean().backward()
            optimizer.step()
        self.assert_near(found[0], found[1], 1e-6)
        self.assert_near(found[1], weight.detach(), 1e-6)

    def test_parameters_at_the_servers(self):
        """Two workers whose models begin differently train worker 0's, as torch does with all examples."""
        models = [dense_model(1), dense_model(2)]
        inputs = torch.randn(STEPS, 8, DIM)

        def body(worker):
            model = models[worker.rank]
            optimizer = ht.ServerOptimizer(worker, model.parameters(), "dense_rows")
            for batch in inputs:
                part = batch[:3] if worker.rank == 0 else batch[3:]
                with worker.step(examples=len(part)):
                    optimizer.pull()
                    optimizer.zero_grad()
                    model(part).square().mean().backward()
                    optimizer.step()
                    optimizer.prefetch()
            optimizer.pull()

        in_threads(self.local({"dense_rows": "adagrad"}, servers=2, workers=2), body)
        reference = dense_model(1)
        optimizer = torchs_optimizer("adagrad", reference.parameters())
        for batch in inputs:
            optimizer.zero_grad()
            reference(batch).square().mean().backward()
            optimizer.step()
        for ours, other, theirs in zip(*(model.parameters() for model in (*models, reference))):
            self.assertTrue(torch.equal(ours, other))
            self.assert_near(ours.detach(), theirs.detach(), 1e-6)

    def test_other_defaults_of_torch(self):
        """Rows stay float32 in memory of the host, whatever torch makes by itself."""
        self.addCleanup(torch.set_default_dtype, torch.get_default_dtype())
        torch.set_default_dtype(torch.float64)
        place = torch.device("meta") if hasattr(torch, "set_default_device") else contextlib.nullcontext()
        with self.local({"dense_rows": "sgd", "words": "sgd"}) as worker:
            parameter = torch.ones(5, device="cpu", requires_grad=True)
            keys = torch.zeros(2, 3, dtype=torch.long, device="cpu")
            bag = ht.EmbeddingBag(worker, "words")
            with place:
                optimizer = ht.ServerOptimizer(worker, [parameter], "dense_rows")
                with worker.step():
                    optimizer.pull()
                    bag(keys)
                    parameter.grad = torch.full((5,), 2.0, device="cpu")
                    optimizer.step()
                optimizer.pull(train=False)
            self.assert_near(parameter.detach(), torch.full((5,), 1 - 2 * RATE))
            features = ht.dataset.Features({}, {
                "a": ht.dataset.Bags(keys[0], keys[0], None),
                "b": ht.dataset.Bags(keys[1], keys[1], torch.ones(3, dtype=torch.float32))})
            self.assertEqual(features.weights_or_none().dtype, torch.float32)

    def test_parameters_at_the_servers_lose_no_update(self):
        """In async and ssp each worker's updates count once: sums of whole numbers tell.

        In async each update is applied alone, and in ssp the mean of those of a step."""
        for mode, updates in (("async", 3 * 20), ("ssp", 20)):
            ends = [-0.25 * updates] * 5, [[1 - 0.25 * updates / 2] * 2] * 2
            parameters = [[torch.zeros(5), torch.ones(2, 2)] for _ in range(3)]

            def body(worker):
                own = [p.requires_grad_() for p in parameters[worker.rank]]
                optimizer = ht.ServerOptimizer(worker, own, "dense_rows")
                for step in range(20):
                    with worker.step(examples=4):
                        optimizer.pull()
                        optimizer.zero_grad()
                        # The second parameter rests in half of the steps.
                        loss = own[0].sum() + (own[1].sum() if step % 2 else 0)
                        loss.backward()
                        optimizer.step()

                def all_have_come():
                    optimizer.pull(train=False)
                    return (own[0].tolist(), own[1].tolist()) == ends

                harness.wait_until(all_have_come, 60, "the sums of all updates")

            sets = {"train.mode": mode, "model.tables.0.optimizer.learning_rate": 0.25}
            in_threads(self.local({"dense_rows": "sgd"}, mode, sets, servers=2, workers=3), body)

    def states_after(self, parts, seed=0):
        """Trains so many steps in each start of one run; returns the dense state and the rows at the end."""
        for place, steps in enumerate(parts):
            with contextlib.closing(self.local({"words": "adagrad"}, f"parts_{len(parts)}")) as worker:
                model = dense_model(5 + place)
                optimizer = torch.optim.Adam([{"params": model[0].parameters(), "lr": 0.1},
                                              {"params": model[2].parameters(), "betas": (0.8, 0.9)}])
                schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
                torch.manual_seed(seed + place)
                kept = ht.keep(worker, model=model, optimizer=optimizer, schedule=schedule)
                bag = ht.EmbeddingBag(worker, "words")
                for step in range(steps):
                    with worker.step():
                        keys = torch.randint(VOCABULARY, (4, 2))  # Random numbers are kept, too.
                        optimizer.zero_grad()
                        model(bag(keys)).square().mean().backward()
                        optimizer.step()
                        schedule.step()
                        if step + 1 == steps:
                            worker.checkpoint()
                self.assertEqual(worker.clock, sum(parts[:place + 1]))
                saved = self.out(f"parts_{len(parts)}") / "checkpoint" / f"step_{worker.clock:010}" / "manifest.json"
                harness.wait_until(saved.exists, 60, "the checkpoint")
                ended = kept.state(), self.rows(worker, "words")
        return ended

    def test_states_in_checkpoints(self):
        """A run that goes on from a checkpoint ends with the bits of one that was never interrupted."""
        whole, in_parts = self.states_after([STEPS]), self.states_after([2, STEPS - 2])
        self.assertEqual(whole[0], in_parts[0])
        self.assertTrue(torch.equal(whole[1], in_parts[1]))

    def test_states_come_back_when_the_job_goes_back(self):
        class GoesBack:
            """The part of a worker that keep() and loop() use."""
            rank, clock, restored, state, on_restored = 0, 0, None, None, None

        model = dense_model(1)
        worker = GoesBack()
        kept = ht.keep(worker, model=model)
        first, weight = worker.state(), model[0].weight.detach().clone()
        self.assertEqual(first, kept.state())
        with torch.no_grad():
            model[0].weight += 1
        worker.restored, worker.clock = worker.state(), 4
        with torch.no_grad():
            model[0].weight += 1
        worker.on_restored()
        self.assertTrue(torch.equal(model[0].weight, weight + 1))
        worker.restored, worker.clock = None, 0  # Back to the beginning.
        kept.restore()
        self.assertEqual(kept.state(), first)
        worker.clock = 3
        with self.assertWarnsRegex(UserWarning, "goes on from step 3, and its checkpoint keeps nothing of worker 0: "
                                                "model begin anew"):
            kept.restore()

    def test_a_compiled_dense_part(self):
        if not hasattr(torch, "compile"):
            self.skipTest(f"torch.compile needs torch 2, and this is {torch.__version__}")
        ends = []
        for compiled in (False, True):
            with self.local({"words": "sgd"}, f"compiled_{compiled}") as worker:
                bag, dense = ht.EmbeddingBag(worker, "words"), dense_model(1)
                torch.manual_seed(2)
                run = torch.compile(dense, backend="aot_eager") if compiled else dense
                for _ in range(STEPS):
                    with worker.step():
                        run(bag(torch.randint(VOCABULARY, (4, 2)))).square().mean().backward()
                ends.append(self.rows(worker, "words"))
        self.assert_near(*ends)

    def test_mistakes(self):
        with self.local({"words": "sgd", "places": "sgd"}) as worker, worker.step():
            bag = ht.EmbeddingBag(worker, "words")
            last = ht.EmbeddingBag(worker, "words", include_last_offset=True)
            both = ht.EmbeddingBagCollection(worker, {"f": "words", "g": "places"})
            keys, two = torch.tensor([1, 2, 3]), torch.tensor([0, 1])
            linear = torch.nn.Linear(2, 2)
            for call, kind, text in [
                    (lambda: ht.EmbeddingBag(worker, "wrds"), hdps.JobError,
                     "table 'wrds' is not one of the job's: 'words', 'places'"),
                    (lambda: ht.EmbeddingBag(worker, "words", "max_pool"), ValueError,
                     "mode: 'max_pool': expected one of 'sum', 'mean', 'max'"),
                    (lambda: bag([1, 2]), TypeError, "input: list: expected a tensor of int64 keys"),
                    (lambda: bag(torch.rand(2, 2)), TypeError,
                     r"input: a tensor of torch.float32: expected int64 keys, as input.long\(\)"),
                    (lambda: bag(keys), ValueError, "offsets: None: expected where each bag begins"),
                    (lambda: bag(keys.view(1, 3), two), ValueError, "offsets: expected None, for each row"),
                    (lambda: bag(keys.view(1, 1, 3)), ValueError, "input has 3 axes: expected keys"),
                    (lambda: bag(keys, two.view(2, 1)), ValueError, r"offsets has 2 axes: expected \[B\]"),
                    (lambda: bag(keys, two.float()), TypeError, "offsets: a tensor of torch.float32"),
                    (lambda: bag(keys, two + 1), ValueError, "offsets: expected to begin with 0 and to rise up to"),
                    (lambda: bag(keys, torch.tensor([0, 4])), ValueError, "rise up to the 3 keys"),
                    (lambda: bag(keys, torch.tensor([0, 2, 1])), ValueError, "rise up to the 3 keys"),
                    (lambda: last(keys, two), ValueError, "offsets: the last is 1: expected the number of keys, 3"),
                    (lambda: bag(keys, two, torch.rand(2)), ValueError,
                     r"per_sample_weights has shape \(2,\): expected that of input, \(3,\)"),
                    (lambda: ht.EmbeddingBag(worker, "words", "max")(keys, two, torch.rand(3)), ValueError,
                     "weights of keys need mode 'sum', and this is 'max'"),
                    (lambda: ht.Embedding(worker, "words")(torch.rand(2)), TypeError, "a tensor of torch.float32"),
                    (lambda: both(keys, two, ["f", "f"]), ValueError, "feature 'f' is there 2 times among"),
                    (lambda: both(keys, two, ["f", "h"]), ValueError, "feature 'g' is there 0 times among"),
                    (lambda: both(keys), ValueError, "lengths: None: expected how many keys"),
                    (lambda: both(keys, keys), ValueError, "lengths: 3 numbers: expected as many for each of the 2"),
                    (lambda: both(keys, two), ValueError, "lengths: their sum is 1: expected the number of keys in "
                                                          "values, 3"),
                    (lambda: both(keys, two + 1, weights=torch.rand(2)), ValueError, "weights: 2 numbers: expected"),
                    (lambda: ht.ServerOptimizer(worker, linear.parameters(), "dense"), hdps.JobError,
                     "table 'dense' is not one of the job's"),
                    (lambda: ht.ServerOptimizer(worker, [], "places"), ValueError, "parameters: 0 tensors"),
                    (lambda: ht.ServerOptimizer(worker, [linear.weight] * 2, "places"), ValueError, "and none twice"),
                    (lambda: ht.ServerOptimizer(worker, [{"params": []}], "places"), TypeError,
                     r"parameters\[0\]: dict: expected a tensor of floats \(groups have"),
                    (lambda: ht.ServerOptimizer(worker, linear.parameters(), "places").step(), ValueError,
                     "step: no parameter has a gradient"),
                    (lambda: ht.keep(worker, model=3), TypeError, r"model: int has no state_dict\(\): expected"),
                    (lambda: ht.keep(worker, part=Stateful({"x": {1, 2}})), TypeError,
                     r"state\['part'\]\['x'\]: set: expected tensors, numbers and texts"),
                    # What only the servers' worker can know comes out of backward().
                    (lambda: (bag(keys, two) * float("nan")).sum().backward(), hdps.JobError, "")]:
                with self.subTest(text), self.assertRaisesRegex(kind, text):
                    call()
            worker.examples = None
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                bag(keys, two).sum().backward()  # The step goes on.

    def test_a_late_backward(self):
        with self.local({"words": "sgd"}) as worker:
            with worker.step():
                found = ht.EmbeddingBag(worker, "words")(torch.tensor([[1, 2]]))
            with worker.step(), self.assertRaisesRegex(hdps.JobError, "step"):
                found.sum().backward()

    def test_parameters_of_other_shapes(self):
        workers = self.local({"dense_rows": "sgd"}, workers=2)
        own, other = (ht.ServerOptimizer(worker, [torch.zeros(3 + worker.rank)], "dense_rows", wait_s=0.1)
                      for worker in workers)
        with self.assertRaisesRegex(hdps.RunError, "worker 0 has not stored its parameters within 0.1 s: expected"):
            other.pull()
        own.pull()
        with self.assertRaisesRegex(hdps.JobError, "worker 0's parameters have other shapes than these 1"):
            other.pull()
        for worker in workers:
            worker.close()
        with self.local({"dense_rows": "sgd"}, "policy", {"model.tables.0.policy.evict_after_steps": 5}) as worker:
            with self.assertRaisesRegex(hdps.JobError, "policy.evict_after_steps=5: expected none"):
                ht.ServerOptimizer(worker, [torch.zeros(1)], "dense_rows")

    def test_a_torch_that_is_too_old(self):
        text = ("import torch\ntorch.__version__ = '1.12.1+cpu'\n"
                "try:\n    import hdps.torch\nexcept ImportError as error:\n    print(error)\n")
        said = harness.run([sys.executable, "-c", text]).stdout
        self.assertIn("hdps.torch needs PyTorch 1.13 or later, and this is 1.12.1+cpu: install a newer one", said)

    def test_types_are_complete(self):
        if not shutil.which("mypy"):
            self.skipTest("no mypy here")
        package = pathlib.Path(hdps.__file__).parent.parent
        # Types of torch itself are left out: reading them takes minutes.
        settings = self.out("mypy.ini")
        settings.write_text("[mypy]\nstrict = True\ndisallow_subclassing_any = False\ncache_dir = /dev/null\n"
                            "[mypy-torch.*]\nfollow_imports = skip\n")
        done = harness.run(["mypy", f"--config-file={settings}", "-p", "hdps.torch"], expect=None, cwd=self.folder,
                           env={**os.environ, "MYPYPATH": str(package)})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Stateful:
    def __init__(self, state):
        self.state = state

    def state_dict(self):
        return self.state

    def load_state_dict(self, state):
        self.state = state


@unittest.skipIf(why, why)
class DistributedDataParallel(harness.DaemonsCase):
    """Dense parameters by DistributedDataParallel over gloo, rows by hdps, workers by torchrun."""

    def train(self, workers, dies=False):
        """Returns rows and parameters at the end, as torch_program.py saves them; `dies`: a server does."""
        out, job = self.out(f"of_{workers}_{dies}"), harness.write_job(self.out("job.json"), {
            "seed": 3, "checkpoint": {"every_steps": 2}, "cluster": {"heartbeat_ms": 100},
            "model": {"type": "tables", "tables": [
                {"name": "words", "dim": DIM, "optimizer": OPTIMIZERS["adagrad"],
                 "init": {"kind": "normal", "scale": 0.5}}]}})
        out.mkdir()
        flags = [f"--job={job}", f"--out={out}", "--servers=2", f"--workers={workers}"]
        address = out / "address"
        self.start("hdps-scheduler", *flags, "--listen=tcp://127.0.0.1:0", f"--address_file={address}")
        harness.wait_until(address.exists, 60, "the scheduler listens")
        where = address.read_text().strip()
        server = ("hdps-server", f"--job={job}", f"--scheduler={where}", "--threads=1")
        victim, _ = self.start(*server), self.start(*server)
        done = self.start_command(
            # Under Python 3.11 torch 1.13 cannot read its own defaults of these two.
            sys.executable, "-m", "torch.distributed.run", "--redirects=9:1", "--tee=9:1",
            "--max_restarts=3", "--monitor_interval=0.1", f"--nproc_per_node={workers}",
            "--master_addr=127.0.0.1", f"--master_port={harness.free_port()}",
            pathlib.Path(__file__).parent / "torch_program.py", out / "end.pt", *([victim.pid] if dies else []),
            env={"HDPS_SCHEDULER": where, "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"}, stderr=subprocess.STDOUT)
        if dies:
            self.assertEqual(victim.wait(120), -signal.SIGKILL)
            self.running.remove(victim)
            self.start(*server)
        try:
            said = done.communicate(timeout=300)[0]
        except subprocess.TimeoutExpired:
            why = harness.run([harness.program("hdps"), "why", f"--scheduler={where}"], expect=None)
            # Ranks end with it and print where they stand.
            subprocess.run(["pkill", "-ABRT", "-f", f"python[0-9.]* -u .*torch_program.py {out}"], check=False)
            said = done.communicate(timeout=60)[0]
            self.fail(f"torchrun stands: {why.stdout}{why.stderr}\n{said}")
        self.assertEqual(done.returncode, 0, said)
        for process in self.running:
            self.assertEqual(process.wait(60), 0)
        summary = harness.summary_of(out)
        self.assertEqual((summary["examples"], summary["failures_survived"] > 0), (8 * STEPS, dies))
        return torch.load(out / "end.pt")

    def test_equals_one_process_with_the_whole_batch(self):
        one, two, four = (self.train(workers) for workers in (1, 2, 4))
        self.assertEqual(one["rows"].shape, (VOCABULARY, DIM))
        for name, value in one.items():
            for others in (two, four):
                # Means of at most 8 examples, of values below 4 and rates of 0.05: a step differs by
                # less than 0.05 * 8 * 4 roundings.
                self.assertLessEqual((others[name] - value).abs().max().item(), 1e-6, name)

    def test_ranks_start_again_together_when_the_job_goes_back(self):
        """A server dies without copies. Whichever rank hears of it first, torchrun starts all of them again."""
        expected, found = self.train(2), self.train(2, dies=True)
        for name, value in expected.items():
            self.assertTrue(torch.equal(found[name], value), name)


if __name__ == "__main__":
    harness.main()
