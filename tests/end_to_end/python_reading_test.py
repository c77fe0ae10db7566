"""Reads the data of jobs from Python: the batches that hdps trains on, their parts and positions, and tensors."""
import collections
import gc
import importlib.util
import math
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
import types
import unittest

import harness

why = "" if importlib.util.find_spec("hdps") else "the Python package was not built: no pybind11 or Python's headers"
if not why:
    import hdps
why_no_torch = why or ("" if importlib.util.find_spec("torch") else "torch is not installed")

ROWS, EVAL_ROWS, BATCH = 1000, 90, 64
DATA = {
    "train": ["train.csv"], "eval": ["eval.csv"], "eval_sets": [{"name": "late", "files": ["train.csv"]}],
    "header": True, "shuffle_rows": 200,
    "columns": [{"name": "click", "type": "label"}, {"name": "row", "type": "numeric"},
                {"name": "age", "type": "numeric"}, {"name": "user"}, {"name": "tags", "type": "multi"}]}
JOB = {
    "seed": 7, "data": DATA,
    "model": {"type": "logistic", "device": "cpu", "wide_optimizer": {"kind": "sgd", "learning_rate": 0.5},
              "dense_optimizer": {"kind": "sgd", "learning_rate": 0.25}},
    "train": {"batch_size": BATCH, "epochs": 2, "eval_each_epoch": False},
    "parallel": {"gradients_mean": True}}


def columns(rows, seed):
    draw = random.Random(seed)
    return {
        "click": [draw.randrange(2) for _ in range(rows)],
        "row": list(range(rows)),
        "age": [draw.randrange(-8, 9) / 8 for _ in range(rows)],
        "user": [f"u{draw.randrange(40)}" for _ in range(rows)],
        "tags": ["|".join(draw.sample(["a", "b", "c", "d"], draw.randrange(4))) for _ in range(rows)]}


def write_csv(path, table):
    lines = [",".join(table)] + [",".join(map(str, cells)) for cells in zip(*table.values())]
    path.write_text("\n".join(lines) + "\n")


def rows_of(batches):
    """The column `row` of each batch."""
    return [[int(numbers[0]) for numbers in batch.numeric.tolist()] for batch in batches]


def content(batch):
    """All that a batch says, as lists."""
    return (batch.labels.tolist(), batch.numeric.tolist(),
            {name: (feature.keys.tolist(), feature.offsets.tolist(), feature.weights and feature.weights.tolist())
             for name, feature in batch.features.items()},
            batch.weights and batch.weights.tolist(), batch.groups and batch.groups.tolist())


class Case(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.data = pathlib.Path(tempfile.mkdtemp(prefix="hdps_reading_"))
        cls.addClassCleanup(shutil.rmtree, cls.data, ignore_errors=True)
        cls.table = columns(ROWS, 1)
        write_csv(cls.data / "train.csv", cls.table)
        write_csv(cls.data / "eval.csv", columns(EVAL_ROWS, 2))
        cls.job_file = harness.write_job(cls.data / "job.json", JOB)

    def job(self, **sets):
        return hdps.Job.load(self.job_file, {key.replace("__", "."): value for key, value in sets.items()})


class Logistic:
    """The job's model, once more: a weight a key, one a number, and a bias."""

    def __init__(self):
        self.keys, self.numbers, self.bias = collections.defaultdict(float), [0.0, 0.0], 0.0

    def step(self, batch):
        """Trains by plain gradient descent, and returns the mean loss before it."""
        features = [(feature.keys.tolist(), feature.offsets.tolist()) for feature in batch.features.values()]
        labels, numbers = batch.labels.tolist(), batch.numeric.tolist()
        keys = [[key for all_keys, offsets in features for key in all_keys[offsets[i]:offsets[i + 1]]]
                for i in range(len(batch))]
        logits = [self.bias + sum(self.keys[key] for key in keys[i]) +
                  sum(w * x for w, x in zip(self.numbers, numbers[i])) for i in range(len(batch))]
        slopes = [(1 / (1 + math.exp(-logit)) - label) / len(batch) for logit, label in zip(logits, labels)]
        for slope, own, row in zip(slopes, keys, numbers):
            self.bias -= 2 * 0.25 * slope  # The layer of numbers has a bias, too.
            self.numbers = [w - 0.25 * slope * x for w, x in zip(self.numbers, row)]
            for key in own:
                self.keys[key] -= 0.5 * slope
        return sum(math.log1p(math.exp(-logit if label else logit))
                   for logit, label in zip(logits, labels)) / len(batch)


@unittest.skipIf(why, why)
class Reading(Case):
    def test_batches_are_those_that_hdps_trains_on(self):
        # Numbers of the column `row` would make steps too long.
        job = self.job(data__validation_share=0.2, data__eval=[],
                       data__columns=[dict(column, transform="standardize", mean=500, scale=500)
                                      if column["name"] == "row" else column for column in DATA["columns"]])
        steps = []
        hdps.train(job, self.out("run"), threads=1, quiet=True, on_step=steps.append)
        own, told = Logistic(), iter(steps)
        for epoch in range(2):
            for batch in hdps.read(job, epoch=epoch):
                step = next(told)
                self.assertEqual((step["epoch"], step["examples"]), (epoch + 1, len(batch)))
                # 32-bit sums of at most a few hundred terms below 10 in 28 steps.
                self.assertAlmostEqual(own.step(batch), step["loss"], delta=2e-5)
        self.assertIsNone(next(told, None))
        model = hdps.Model.open(self.out("run"))
        keys = list(own.keys)
        self.assertGreater(len(keys), 40)
        for key, (weight,) in zip(keys, model.lookup("wide", keys=keys).tolist()):
            self.assertAlmostEqual(own.keys[key], weight, delta=2e-5)

    def test_parts_are_disjoint_and_whole(self):
        whole = rows_of(hdps.read(self.job()))
        self.assertEqual(sorted(sum(whole, [])), list(range(ROWS)))
        self.assertNotEqual(sum(whole, []), list(range(ROWS)))
        self.assertEqual([len(rows) for rows in whole], [BATCH] * (ROWS // BATCH) + [ROWS % BATCH])
        for sets, workers in [({}, 2), ({}, 3), ({"data__parts": [40, 4, 20]}, 3)]:
            parts = [rows_of(hdps.read(self.job(**sets), part=(rank, workers))) for rank in range(workers)]
            for step, rows in enumerate(whole):
                self.assertEqual(sorted(sum((part[step] for part in parts), [])), sorted(rows))
            self.assertEqual({len(part) for part in parts}, {len(whole)})
        # A worker without a row of the last step still has the step.
        last = [list(hdps.read(self.job(train__batch_size=333), part=(rank, 2)))[-1] for rank in range(2)]
        self.assertEqual([len(batch) for batch in last], [0, 1])
        self.assertEqual(last[0].numeric.tolist(), [])
        self.assertEqual(last[0].features["tags"].offsets.tolist(), [0])
        same = self.job(parallel__dataset_strategy="full_batch", parallel__parallel_mode="semi_auto_parallel")
        self.assertEqual(rows_of(hdps.read(same, part=(1, 2))), whole)

    def test_a_position_gives_the_rest(self):
        job = self.job(data__negatives={"per_positive": 1}, data__item_features=["user"])
        whole = [content(batch) for batch in hdps.read(job, part=(1, 2), epoch=3)]
        self.assertNotEqual(whole, [content(batch) for batch in hdps.read(job, part=(1, 2), epoch=2)])
        for cut in (0, 1, 7, len(whole) - 1, len(whole)):
            before = hdps.read(job, part=(0, 1), epoch=3)  # Another number of workers.
            for _ in range(cut):
                next(before)
            epoch, step = before.position
            self.assertEqual((epoch, step), (3, cut))
            rest = hdps.read(job, part=(1, 2), epoch=epoch, skip_steps=step)
            self.assertEqual([content(batch) for batch in rest], whole[cut:])
            self.assertEqual(rest.position, (3, len(whole)))

    def test_held_out_rows_and_evaluation_sets(self):
        job = self.job(data__validation_share=0.25, data__eval=[])
        trained = set(sum(rows_of(hdps.read(job)), []))
        held_out = sum(rows_of(hdps.read(job, which="validation")), [])
        self.assertEqual(held_out, sorted(held_out))
        self.assertGreater(len(held_out), ROWS / 8)
        self.assertEqual(sorted([*trained, *held_out]), list(range(ROWS)))
        self.assertEqual(sum(rows_of(hdps.read(self.job(), which="eval")), []), list(range(EVAL_ROWS)))
        halves = [sum(rows_of(hdps.read(self.job(), which="late", part=(rank, 2))), []) for rank in range(2)]
        self.assertEqual(halves, [list(range(0, ROWS, 2)), list(range(1, ROWS, 2))])

    def test_weights_groups_and_negatives(self):
        table = dict(self.table, importance=[i % 3 for i in range(ROWS)])
        write_csv(self.data / "weighted.csv", table)
        job = self.job(data__train=["weighted.csv"], data__eval=[], data__shuffle_rows=0,
                       data__eval_sets=[], data__negatives={"per_positive": 2}, data__item_features=["user"],
                       data__columns=[*DATA["columns"], {"name": "importance", "type": "weight"},
                                      {"name": "who", "type": "group", "from": "user"}])
        batches = list(hdps.read(job))
        rows, labels = sum(rows_of(batches), []), sum((batch.labels.tolist() for batch in batches), [])
        self.assertEqual([label for row, label, before in zip(rows, labels, [-1] + rows) if row != before],
                         table["click"])
        positives = sum(table["click"])
        self.assertEqual(len(rows), ROWS + 2 * positives)
        self.assertEqual(sum(labels), positives)
        self.assertEqual(sum((batch.weights.tolist() for batch in batches), []), [row % 3 for row in rows])
        groups = sum((batch.groups.tolist() for batch in batches), [])
        self.assertEqual(len(set(groups)), 40)
        self.assertEqual(dict(zip(rows, groups))[0], dict(zip(rows, groups))[table["user"].index(table["user"][0])])
        self.assertIsNone(next(hdps.read(self.job())).weights)
        self.assertIsNone(next(hdps.read(self.job())).groups)

    def test_values_have_weights(self):
        (self.data / "fields.ffm").write_text("1 0:5:0.5 1:7:2 0:6:1\n0 1:8:4\n")
        job = hdps.Job({"data": {"format": "libffm", "num_fields": 2, "train": [str(self.data / "fields.ffm")],
                                 "shuffle_rows": 0}, "model": {"type": "logistic"}})
        (batch,) = hdps.read(job)
        first, second = batch.features.values()
        self.assertEqual((first.weights.tolist(), first.offsets.tolist(), first.lengths.tolist()),
                         ([0.5, 1], [0, 2, 2], [2, 0]))
        self.assertEqual((second.weights.tolist(), second.lengths.tolist()), ([2, 4], [1, 1]))
        self.assertEqual(batch.numeric.shape, (2, 0))

    def test_rows_in_memory(self):
        expected = [content(batch) for batch in hdps.read(self.job())]
        table = dict(self.table, tags=[tags.split("|") if tags else [] for tags in self.table["tags"]])
        self.assertEqual([content(batch) for batch in hdps.read(self.job(), rows=table)], expected)
        settings = dict(JOB, data={key: value for key, value in DATA.items() if "eval" not in key and key != "train"})
        self.assertEqual([content(batch) for batch in hdps.read(settings, rows=table)], expected)
        evaluated = hdps.read(self.job(), which="eval", rows=columns(EVAL_ROWS, 2))
        self.assertEqual(sum(rows_of(evaluated), []), list(range(EVAL_ROWS)))

    def test_arrays_share_the_memory_of_a_batch(self):
        batches = hdps.read(self.job())
        self.assertEqual(batches.columns, ["row", "age"])
        batch = next(batches)
        keys, signed = batch.features["user"].keys, batch.features["user"].keys.view("int64")
        self.assertEqual((keys.dtype, signed.dtype, signed.shape), ("uint64", "int64", (BATCH,)))
        self.assertTrue(any(key >= 2**63 for key in keys.tolist()))
        self.assertEqual([key % 2**64 for key in signed.tolist()], keys.tolist())
        numeric, expected = memoryview(batch.numeric), batch.numeric.tolist()
        self.assertTrue(numeric.readonly)
        del batch, batches
        gc.collect()
        self.assertEqual(numeric.tolist(), expected)

    def test_several_readers_and_a_fork(self):
        expected = [content(batch) for batch in hdps.read(self.job())]
        found = {}
        readers = [threading.Thread(target=lambda i=i: found.update(
            {i: [content(batch) for batch in hdps.read(self.job())]})) for i in range(3)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        self.assertEqual(found, {i: expected for i in range(3)})
        for _ in range(20):
            next(hdps.read(self.job()))  # Is left, with batches that wait.
        code = f"""
            import os, hdps
            batches = hdps.read({str(self.job_file)!r})
            next(batches)
            child = os.fork()
            if child == 0:
                try:
                    next(batches)
                except hdps.RunError as error:
                    print("RunError", flush=True)
                del batches
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            print(len(list(batches)), flush=True)
            """
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], timeout=60, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, f"RunError\n{ROWS // BATCH}\n"), done.stderr)

    def test_bad_rows(self):
        text = (self.data / "train.csv").read_text().splitlines()
        text[5] = "1,old,0,u1,a"
        (self.data / "bad.csv").write_text("\n".join(text) + "\n")
        job = self.job(data__train=["bad.csv"], data__max_bad_rows=1)
        batches = hdps.read(job)
        self.assertEqual(len(sum(rows_of(batches), [])), ROWS - 1)
        self.assertEqual(batches.bad_rows, 1)
        text[700] = "1,new,0,u1,a"
        (self.data / "bad.csv").write_text("\n".join(text) + "\n")
        with self.assertRaisesRegex(hdps.JobError, "bad.csv:.*expected a number"):
            for _ in hdps.read(job):
                pass

    def test_mistakes(self):
        job = self.job()
        for wrong, text in [
                ({"part": (2, 2)}, r"part=\(2, 2\): expected the rank"),
                ({"part": (0, 0)}, r"part=\(0, 0\): expected the rank"),
                ({"part": (-1, 2)}, "part: rank=-1 is out of range"),
                ({"epoch": -1}, "epoch=-1 is out of range"),
                ({"skip_steps": 1 << 40}, "skip_steps=1099511627776 is out of range"),
                ({"threads": 5000}, "threads=5000 is out of range"),
                ({"which": "test"}, "no rows named 'test'; it may have train, eval, late"),
                ({"which": ""}, "no rows named ''"),
                ({"which": "late", "rows": {}}, "rows: they may stand for"),
                ({"rows": {"click": [1]}}, "column")]:
            with self.subTest(**wrong), self.assertRaisesRegex(hdps.JobError, text):
                hdps.read(job, **wrong)
        with self.assertRaisesRegex(hdps.JobError, "data.parts has 2 numbers, but the part is one of 3"):
            hdps.read(self.job(data__parts=[32, 32]), part=(0, 3))
        with self.assertRaises(TypeError):
            hdps.read(job, part=1)
        gone = self.data / "gone.csv"
        write_csv(gone, self.table)
        job = self.job(data__train=["gone.csv"])
        gone.unlink()
        with self.assertRaisesRegex(hdps.JobError, "gone.csv' does not exist"):
            hdps.read(job)
        with self.assertRaisesRegex(hdps.JobError, 'dtype "float32" does not fit uint64; give one of float64, int64'):
            next(hdps.read(self.job())).features["user"].keys.view("float32")


@unittest.skipIf(why_no_torch, why_no_torch)
class Tensors(Case):
    def setUp(self):
        super().setUp()
        import hdps.torch
        import torch
        self.Dataset, self.torch = hdps.torch.Dataset, torch

    def rows(self, batches):
        return [[int(row) for row in batch["numeric"][:, 0]] for batch in batches]

    def test_batches_are_tensors(self):
        torch = self.torch
        for batch, tensors in zip(hdps.read(self.job()), self.Dataset(self.job())):
            self.assertEqual(tensors["labels"].tolist(), batch.labels.tolist())
            self.assertEqual(tensors["numeric"].tolist(), batch.numeric.tolist())
            features = tensors["features"]
            self.assertEqual(features.keys(), ["user", "tags"])
            self.assertEqual(features.values().tolist(), batch.features["user"].keys.view("int64").tolist() +
                             batch.features["tags"].keys.view("int64").tolist())
            self.assertEqual(features.lengths().tolist(), batch.features["user"].lengths.tolist() +
                             batch.features["tags"].lengths.tolist())
            self.assertIsNone(features.weights_or_none())
            bags = features["tags"]
            self.assertEqual((bags.input.dtype, bags.offsets.dtype), (torch.int64, torch.int64))
            self.assertEqual(bags.offsets.tolist(), batch.features["tags"].offsets.tolist()[:-1])
            # They are the arguments of a bag.
            found = torch.nn.functional.embedding_bag(bags.input % 7, torch.ones(7, 2), bags.offsets, mode="sum")
            self.assertEqual(found[:, 0].tolist(), batch.features["tags"].lengths.tolist())

    def test_workers_read_each_example_once(self):
        workers = [types.SimpleNamespace(rank=rank, workers=2, job=self.job()) for rank in range(2)]
        parts = [self.rows(self.Dataset(worker)) for worker in workers]
        self.assertEqual(sorted(sum(parts[0] + parts[1], [])), list(range(ROWS)))
        self.assertEqual(len(parts[0]), len(parts[1]))
        # Figures of an evaluation are of all rows.
        self.assertEqual(len(sum(self.rows(self.Dataset(workers[1], which="eval")), [])), EVAL_ROWS)

    def test_the_part_follows_the_number_of_workers(self):
        """Two workers become four: each example of the epoch comes once, as it does with one worker."""
        whole = self.rows(self.Dataset(self.job()))
        workers = [types.SimpleNamespace(rank=rank, workers=2, job=self.job()) for rank in range(4)]
        data = [self.Dataset(worker) for worker in workers]
        iterations = [iter(each) for each in data]
        seen = [self.rows([next(batches) for _ in range(3)]) for batches in iterations[:2]]
        for worker in workers:
            worker.workers = 4
        for joined in data[2:]:
            joined.load_state_dict(data[0].state_dict())
        seen += [self.rows(batches) for batches in iterations]
        self.assertEqual({len(rest) for rest in seen[2:]}, {len(whole) - 3})
        self.assertEqual(sorted(sum(sum(seen, []), [])), sorted(sum(whole, [])))

    def test_a_position_gives_the_rest(self):
        whole = self.rows(self.Dataset(self.job(), epochs=2))
        steps = len(whole) // 2
        self.assertNotEqual(whole[:steps], whole[steps:])
        for cut in (0, 3, steps, steps + 2, 2 * steps):
            left = self.Dataset(self.job(), epochs=2)
            batches = iter(left)
            for _ in range(cut):
                next(batches)
            other = self.Dataset(self.job(), epochs=2)
            other.load_state_dict(left.state_dict())
            self.assertEqual(self.rows(other), whole[cut:])
            self.assertEqual(self.rows(batches), whole[cut:])
        # At the end of all epochs a run is over; the same object goes on with another epoch.
        state = other.state_dict()
        over = self.Dataset(self.job(), epochs=2)
        over.load_state_dict(state)
        self.assertEqual(self.rows(over), [])
        self.assertNotEqual(self.rows(other), whole)
        self.assertEqual(other.state_dict(), {"epoch": 3, "step": steps})

    def test_the_position_stands_in_checkpoints(self):
        """A job that died goes on with the rows behind its checkpoint, beside rows and dense layers."""
        job = hdps.Job({"data": {**DATA, "train": [str(self.data / "train.csv")], "eval": [], "eval_sets": []},
                        "model": {"type": "tables", "tables": [{"name": "users", "dim": 2}]},
                        "train": {"batch_size": BATCH}})
        self.assertEqual(job.warnings, [])
        whole = self.rows(self.Dataset(job))

        def train(steps):
            seen = []
            with hdps.local(job, self.out("run"), quiet=True) as worker:
                data, bag = self.Dataset(worker), hdps.torch.EmbeddingBag(worker, "users")
                hdps.torch.keep(worker, data=data)
                for batch in worker.loop(lambda _: data):
                    seen += self.rows([batch])
                    bag(*batch["features"]["user"]).mean().backward()
                    if len(seen) == 5:
                        worker.checkpoint()
                    if len(seen) == steps:
                        harness.wait_until(lambda: list(self.out("run").glob("checkpoint/*/manifest.json")), 30,
                                           "the checkpoint of step 5")
                        raise InterruptedError
            return seen

        with self.assertRaises(InterruptedError):
            train(9)
        self.assertEqual(train(None), whole[5:])

    def test_an_iteration_goes_back(self):
        dataset = self.Dataset(self.job())
        batches = iter(dataset)
        first = [next(batches) for _ in range(2)]
        state = dataset.state_dict()
        expected = self.rows([next(batches) for _ in range(5)])
        dataset.load_state_dict(state)
        self.assertEqual(self.rows([next(batches) for _ in range(5)]), expected)
        self.assertNotEqual(self.rows(first), expected[:2])
        again = self.Dataset(self.job(), which="eval")
        self.assertEqual(self.rows(again), self.rows(again))

    def test_a_data_loader_gives_the_same(self):
        loader = self.torch.utils.data.DataLoader(self.Dataset(self.job()), batch_size=None)
        self.assertEqual(self.rows(loader), self.rows(self.Dataset(self.job())))
        with self.assertRaisesRegex(hdps.JobError, "num_workers=0"):
            list(self.torch.utils.data.DataLoader(self.Dataset(self.job()), batch_size=None, num_workers=1))
        with self.assertRaisesRegex(hdps.JobError, "epochs=0: expected a whole number from 1 on"):
            self.Dataset(self.job(), epochs=0)


if __name__ == "__main__":
    unittest.main()
