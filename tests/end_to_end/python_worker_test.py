"""Trains models of its own over the tables of a job: hdps.local and hdps.join, their mistakes, and what dies."""
import contextlib
import importlib.util
import io
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
import unittest
import unittest.mock
import warnings

import harness
from random_objects import MISTAKES, numpy, random_array, random_object

why = "" if importlib.util.find_spec("hdps") else "the Python package was not built: no pybind11 or Python's headers"
if not why:
    import hdps
    from hdps import _hdps
needs_numpy = unittest.skipIf(numpy is None, "this Python has no NumPy")

QUICK = {"heartbeat_ms": 50}
SGD = {"kind": "sgd", "learning_rate": 0.5}
JOB = {"name": "own", "seed": 3, "cluster": QUICK, "model": {"type": "tables", "tables": [
    {"name": "words", "dim": 2, "optimizer": SGD}, {"name": "users", "dim": 3}]}}
ONES = [[1.0, 1.0]]


def changed(**sections):
    return {**JOB, **{name: {**JOB.get(name, {}), **values} for name, values in sections.items()}}


class Own(harness.Case):
    def local(self, name="run", job=None, **kwargs):
        worker = hdps.local(job or JOB, self.out(name), quiet=True, threads=1, **kwargs)
        for each in worker if isinstance(worker, list) else [worker]:
            self.addCleanup(each.close)
        return worker

    def one_step(self, worker, keys=(7,), gradient=1.0):
        pulled = worker.pull("words", list(keys))
        worker.push(pulled, [[gradient] * 2] * len(pulled.keys))
        worker.advance()

    def rows(self, worker, keys=(7,)):
        return worker.pull("words", list(keys), train=False).rows.tolist()

    def python(self, code, **kwargs):
        process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kwargs)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def saved(self, step, log=None):
        """Waits until the checkpoint of a step is complete: it is written while training goes on."""
        log = self.out("run") / "log" / "train.log" if log is None else log
        harness.wait_until(lambda: f"saved {self.out('run')}/checkpoint/step_{step:010}" in log.read_text(), 30,
                           f"the checkpoint of step {step}")

    def raises(self, mistakes):
        for name, kind, text, mistake in mistakes:
            with self.subTest(name), self.assertRaisesRegex(kind, text):
                mistake()


def in_threads(works):
    """Runs each function in a thread of its own; raises what the first of them raised."""
    raised = []

    def run(work):
        try:
            work()
        except BaseException as error:
            raised.append(error)
    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    if raised:
        raise raised[0]


@unittest.skipIf(why, why)
class Local(Own):
    def test_a_step(self):
        worker = self.local()
        self.assertEqual((worker.rank, worker.workers, worker.clock), (0, 1, 0))
        self.assertEqual((worker.tables, worker.restored, worker.job.name), ({"words": 2, "users": 3}, None, "own"))
        both = worker.pull({"words": [[5, 9], [5, -1]], "users": [1]})
        words = both["words"]
        self.assertEqual(sorted(words.keys.tolist()), [5, 9, 2 ** 64 - 1])
        self.assertEqual([words.keys.tolist()[at] for at in words.positions.tolist()], [5, 9, 5, 2 ** 64 - 1])
        self.assertEqual((words.keys.dtype, words.rows.dtype, words.positions.dtype), ("uint64", "float32", "int64"))
        self.assertEqual((words.rows.shape, both["users"].rows.shape), ((3, 2), (1, 3)))
        before = dict(zip(words.keys.tolist(), words.rows.tolist()))
        worker.push(words, [[1.0, 2.0]] * 3)
        worker.push("words", [5, 9, 5], [[1.0, 0.0], [0.5, 0.0], [2.0, 0.0]])
        worker.advance(examples=8)
        after = dict(zip([5, 9], self.rows(worker, [5, 9])))
        step = {key: [b - a for a, b in zip(after[key], before[key])] for key in after}
        # Sums of at most three gradients and a product, in floats of 2^-24.
        for key, expected in ((5, [0.5 * 4, 0.5 * 2]), (9, [0.5 * 1.5, 0.5 * 2])):
            for got, wanted in zip(step[key], expected):
                self.assertAlmostEqual(got, wanted, delta=8 * 2 ** -24 * 4)
        self.assertEqual(before[2 ** 64 - 1], words.rows.tolist()[words.keys.tolist().index(2 ** 64 - 1)])
        worker.finish()
        summary = harness.summary_of(self.out("run"))
        self.assertEqual((summary["steps"], summary["examples"], summary["rows"]), (1, 8, 3))
        worker.finish()  # Has no effect.
        with self.assertRaisesRegex(hdps.Ended, "all workers have finished"):
            worker.pull("words", [1])

    def test_a_step_that_is_given_up_changes_nothing(self):
        worker = self.local()
        with worker.step():
            worker.push(worker.pull("words", [7]), ONES)
        before = self.rows(worker)
        with self.assertRaisesRegex(LookupError, "mine"), worker.step(5):
            worker.push(worker.pull("words", [7]), ONES)
            raise LookupError("mine")
        for _ in worker.loop([1, 2], finish=False):
            worker.push(worker.pull("words", [7]), ONES)
            break
        self.assertEqual(worker.clock, 1)
        worker.pull("words", [7])
        worker.advance()
        self.assertEqual((self.rows(worker), worker.clock), (before, 2))

    def test_looking_makes_no_rows(self):
        worker = self.local()
        looked = worker.pull("words", list(range(100)), train=False)
        self.assertEqual(looked.rows.tolist(), worker.pull("words", looked.keys, train=False).rows.tolist())
        self.one_step(worker)
        worker.finish()
        self.assertEqual(harness.summary_of(self.out("run"))["rows"], 1)

    def test_stored_rows_are_read(self):
        worker = self.local()
        worker.store("words", [4, 5], [[1.5, 2.5], [3.5, 4.5]])
        self.assertEqual(self.rows(worker, [5, 4]), self.rows(worker, [5, 4]))
        pulled = worker.pull("words", [4])
        self.assertEqual(pulled.rows.tolist(), [[1.5, 2.5]])

    def test_prefetch_changes_nothing(self):
        digests = []
        for ahead in (False, True):
            worker = self.local(f"ahead_{ahead}")
            for step in range(6):
                pulled = worker.pull("words", [step, step + 1])
                if ahead:
                    worker.prefetch("words", [step + 1, step + 2])
                worker.push(pulled, [[1.0, 1.0]] * 2)
                worker.advance()
            worker.finish()
            digests.append(harness.summary_of(self.out(f"ahead_{ahead}"))["digest"])
        self.assertEqual(*digests)

    def test_the_state_is_of_the_rows_checkpoint(self):
        calls = []

        def state():
            calls.append(threading.current_thread())
            return b"state of step %d" % worker.clock
        worker = self.local(job=changed(checkpoint={"every_steps": 2}))
        worker.state = state
        for _ in range(3):
            self.one_step(worker)
        self.saved(2)
        worker.close()
        self.assertEqual(set(calls), {threading.current_thread()})
        worker = self.local()
        self.assertEqual((worker.clock, worker.restored), (2, b"state of step 2"))
        after_two = self.rows(worker)
        worker.checkpoint(extra=b"given")
        self.one_step(worker)
        self.assertNotEqual(self.rows(worker), after_two)
        self.saved(3)
        worker.close("enough")
        worker = self.local()
        self.assertEqual((worker.clock, worker.restored), (3, b"given"))

    def test_what_the_state_raises_comes_out_and_costs_the_worker(self):
        def state():
            raise LookupError("no state today")
        worker = self.local(state=state)
        self.one_step(worker)
        worker.checkpoint()
        with self.assertRaisesRegex(LookupError, "no state today"):
            self.one_step(worker)
        with self.assertRaisesRegex(hdps.RunError, r"has left its job: an exception ended advance\(\)"):
            self.one_step(worker)
        self.assertEqual(self.local().clock, 0)  # Nothing was saved.

    def test_the_state_calls_nothing_of_its_worker(self):
        worker = self.local(state=lambda: worker.pull("words", [1]))
        worker.checkpoint()
        with self.assertRaisesRegex(hdps.JobError, r"pull\(\): this worker is in advance\(\) at the moment"):
            self.one_step(worker)

    def test_an_evaluation(self):
        told = []

        def evaluate(worker):
            told.append((worker.clock, self.rows(worker)))
            return {"auc": 0.5 + worker.clock / 100, "own_figure": 2}
        job = changed(train={"eval_every_steps": 2})
        worker = self.local(job=job)
        with self.assertRaisesRegex(hdps.JobError, "eval_every_steps=2 .*give evaluate="):
            worker.loop([1])
        for batch in worker.loop(range(5), evaluate):
            worker.push(worker.pull("words", [7]), ONES)
        self.assertEqual([clock for clock, _ in told], [2, 4])
        lines = [json.loads(line) for line in (self.out("run") / "metrics.jsonl").read_text().splitlines()]
        figures = [line["eval_metrics"] for line in lines if line.get("eval_metrics")]
        self.assertEqual([(f["auc"], f["own_figure"]) for f in figures], [(0.52, 2), (0.54, 2)])

    def test_the_job_ends_the_loop(self):
        worker = self.local(job=changed(train={"max_steps": 3}))
        seen = []
        for batch in worker.loop(range(100), examples=lambda batch: 10):
            worker.push(worker.pull("words", [7]), ONES)
            seen.append(batch)
        self.assertEqual(seen, [0, 1, 2])
        self.assertEqual(harness.summary_of(self.out("run"))["examples"], 30)
        by_hand = self.local("hand", job=changed(train={"max_steps": 1}))
        self.one_step(by_hand)  # The last step counts without an exception.
        with self.assertRaisesRegex(hdps.Ended, "the job has ended"):
            self.one_step(by_hand)

    def test_two_workers_in_threads_are_one(self):
        def train(worker, keys):
            for key in worker.loop(keys, examples=lambda key: 1):
                worker.push(worker.pull("words", [key, 100]), [[0.25 * key, 1.0], [1.0, 0.5 * key]])
        keys = list(range(12))
        digests = []
        for name in ("a", "b"):
            workers = self.local(name, workers=2, servers=2)
            self.assertEqual([worker.rank for worker in workers], [0, 1])
            # The second has fewer, and makes empty steps until the first has finished.
            in_threads([lambda: train(workers[0], keys[::2]), lambda: train(workers[1], keys[1:8:2])])
            summary = harness.summary_of(self.out(name))
            self.assertEqual((summary["steps"], summary["examples"]), (6, 10))
            digests.append(summary["digest"])
        self.assertEqual(*digests)

    def test_an_exception_in_one_worker_ends_a_job_of_one_process(self):
        """Nobody could start that worker again: the others hear whose exception it was."""
        one, other = self.local(workers=2)
        with self.assertRaisesRegex(LookupError, "mine"), one:
            raise LookupError("mine")
        with self.assertRaisesRegex(hdps.RunError, r"worker 0 \(.*\): LookupError: mine"):
            other.finish()

    def test_two_threads_in_one_worker(self):
        workers = self.local(workers=2)
        said = []

        def second():
            # The first waits in the pull of its second step, for the other worker has made none.
            harness.wait_until(lambda: workers[0].clock == 1, 30, "the first step")
            while not said:
                try:
                    workers[0].pull("words", [1], train=False)
                except hdps.JobError as error:
                    said.append(str(error))
            self.one_step(workers[1])
            in_threads([workers[1].finish])

        def first():
            self.one_step(workers[0])
            self.one_step(workers[0])
            workers[0].finish()
        in_threads([first, second])
        self.assertRegex(said[0], r"pull\(\): this worker is in (pull|advance|finish)\(\) at the moment; one thread")

    def test_progress_and_the_log(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            with hdps.local(JOB, self.out("run"), threads=1) as worker:
                self.one_step(worker)
        self.assertIn("the cluster is complete", said.getvalue())
        self.assertIn("Done.", said.getvalue())
        self.assertIn("worker 0", (self.out("run") / "log" / "train.log").read_text())

    def test_settings_replace_those_of_every_form_of_a_job(self):
        for form, job in enumerate((JOB, hdps.Job(JOB), hdps.Job(JOB, {"train.max_steps": 9, "name": "other"}))):
            with self.subTest(form):
                worker = self.local(f"run_{form}", job=job, set={"train.max_steps": 1, "model.tables.0.dim": 4})
                self.assertEqual(worker.tables, {"words": 4, "users": 3})
                self.assertEqual(worker.job.to_dict()["train"]["max_steps"], 1)
                self.assertEqual(worker.pull("words", [7]).rows.shape, (1, 4))
                worker.advance()
                with self.assertRaises(hdps.Ended):
                    worker.advance()
                self.assertEqual(worker.job.name, "other" if form == 2 else "own")
        with self.assertRaisesRegex(hdps.JobError, "max_stepss"):
            self.local("wrong", job=hdps.Job(JOB), set={"train.max_stepss": 1})

    def test_one_job_at_a_time(self):
        worker = self.local()
        with self.assertRaisesRegex(hdps.RunError, "trained in this process already; .*close its workers"):
            self.local("other")
        worker.close()
        self.local("other")


@unittest.skipIf(why, why)
@needs_numpy
class Numpy(Own):
    def test_a_loop_in_numpy_is_the_plain_loop(self):
        """A logistic regression over columns of categories: rows at servers, and in a dict."""
        draw = numpy.random.RandomState(5)
        columns, rows = 6, 40 * 64
        keys = draw.randint(0, 50, size=(rows, columns)) + 1000 * numpy.arange(columns)
        truth = draw.normal(size=columns * 1000 + 1000)
        labels = (draw.uniform(size=rows) < 1 / (1 + numpy.exp(-truth[keys].sum(axis=1)))).astype(numpy.float32)
        rate = numpy.float32(0.5)
        job = {"cluster": QUICK, "model": {"type": "tables", "tables": [
            {"name": "wide", "dim": 1, "init": {"kind": "zeros"}, "optimizer": SGD}]}}
        batches = [slice(at, at + 64) for at in range(0, rows, 64)]

        def gradients(weights, positions, y):
            logits = weights[positions].reshape(len(y), columns).sum(axis=1, dtype=numpy.float32)
            slope = (1 / (1 + numpy.exp(-logits)) - y) / numpy.float32(len(y))
            sums = numpy.zeros(len(weights), numpy.float32)
            numpy.add.at(sums, positions, numpy.repeat(slope, columns))
            return sums
        worker = self.local(job=job)
        for batch in worker.loop(batches, examples=lambda batch: 64, finish=False):
            pulled = worker.pull("wide", keys[batch])
            weights, positions = numpy.asarray(pulled.rows)[:, 0], numpy.asarray(pulled.positions)
            worker.push(pulled, gradients(weights, positions, labels[batch])[:, None])
        plain = numpy.zeros(columns * 1000 + 1000, numpy.float32)
        for batch in batches:
            distinct, positions = numpy.unique(keys[batch].ravel(), return_inverse=True)
            plain[distinct] -= rate * gradients(plain[distinct], positions, labels[batch])
        distinct = numpy.unique(keys)
        looked = worker.pull("wide", distinct, train=False)
        by_key = dict(zip(numpy.asarray(looked.keys).tolist(), numpy.asarray(looked.rows)[:, 0].tolist()))
        apart = max(abs(by_key[key] - plain[key]) for key in distinct.tolist())
        harness.figure(f"40 steps in NumPy over hdps' rows and over an array are at most {apart:.3g} apart")
        # Each step adds a product of at most 0.5, multiplied by n and divided by it again at the servers: few
        # roundings of 2^-24 of a weight below 4, which later steps do not make larger.
        self.assertLess(apart, 40 * 8 * 2 ** -24 * 4)

    def test_nothing_is_copied_that_lies_right(self):
        worker = self.local()
        pulled = worker.pull("words", numpy.arange(6))
        at = lambda array: array.__array_interface__["data"][0]
        for name in ("keys", "rows", "positions"):
            views = [numpy.asarray(getattr(pulled, name)) for _ in range(2)]
            self.assertEqual(at(views[0]), at(views[1]), name)
            self.assertFalse(views[0].flags.writeable)
        rows = numpy.asarray(pulled.rows)
        before = rows.tolist()
        self.assertEqual(worker.copied_bytes, 0)
        worker.push(pulled, rows, each=True)  # Summed where it is sent from.
        self.assertEqual(worker.copied_bytes, 0)
        worker.push(pulled, rows[::2].repeat(2, axis=0)[:, ::-1])
        self.assertEqual(worker.copied_bytes, rows.nbytes)
        worker.advance()
        worker.close()
        del pulled, worker
        self.assertEqual(rows.tolist(), before)  # The array keeps the memory.
        keys, gradients = numpy.arange(8), numpy.ones((4, 2), numpy.float32)
        for given, of_keys, copied in ((keys, True, False), (keys.view("u8"), True, False), (keys[2:], True, False),
                                       (keys.reshape(2, 4), True, False), (keys[::2], True, True),
                                       (keys.reshape(2, 4).T, True, True), ([1, 2], True, True),
                                       (gradients, False, False), (gradients[1:3], False, False),
                                       (gradients.T, False, True), (numpy.broadcast_to(gradients[0], (9, 2)), False, True)):
            address, was_copied = _hdps.numbers_at(given, of_keys)
            self.assertEqual(was_copied, copied)
            if not copied:
                self.assertEqual(address, at(given))

    def test_copies_have_the_same_numbers(self):
        worker = self.local()
        keys = numpy.arange(24).reshape(2, 3, 4)
        for given in (keys, keys[:, ::-1], keys.T, keys[::-1, :, ::2], keys.tolist(), keys.view("u8"),
                      numpy.broadcast_to(keys[0, 0], (3, 4))):
            pulled = worker.pull("words", given, train=False)
            got = numpy.asarray(pulled.keys)[numpy.asarray(pulled.positions)]
            self.assertEqual(got.tolist(), numpy.asarray(given).ravel().tolist())

    def test_dlpack_and_array(self):
        class Series:
            def __array__(self):
                return numpy.array([3, 4])

        class Tensor:
            def __init__(self, array, device=None):
                self.array, self.device = array, device

            def __dlpack__(self, **kwargs):
                return self.array.__dlpack__(**kwargs)

            def __dlpack_device__(self):
                return self.device or self.array.__dlpack_device__()
        worker = self.local()
        self.assertEqual(worker.pull("words", Series()).keys.shape, (2,))
        keys = numpy.arange(12).reshape(3, 4)
        self.assertEqual(_hdps.numbers_at(Tensor(keys), True), (keys.__array_interface__["data"][0], False))
        self.assertTrue(_hdps.numbers_at(Tensor(keys.T), True)[1])
        for pinned in ((3, 0), (11, 0)):  # For CUDA and ROCm: memory of the host.
            self.assertFalse(_hdps.numbers_at(Tensor(keys, pinned), True)[1])
        with self.assertRaisesRegex(TypeError, r"the numbers lie on a device; give .cpu\(\) of them"):
            _hdps.numbers_at(Tensor(keys, (2, 0)), True)
        pulled = worker.pull("words", Tensor(keys[:, ::2]))
        self.assertEqual(sorted(pulled.keys.tolist()), [0, 2, 4, 6, 8, 10])
        worker.push(pulled, Tensor(numpy.ones((6, 2), numpy.float32)))
        with self.assertRaisesRegex(TypeError, r'push\("words"\): gradients: the numbers are float64; give float32'):
            worker.push(pulled, Tensor(numpy.ones((6, 2))))

    def test_whatever_is_given(self):
        """No argument ends the interpreter, and each wrong one raises an exception of a mistake."""
        draw = random.Random(37)
        calls = harness.asked("HDPS_PYTHON_WORKER_FUZZ", 3000, 50000, "calls of a worker with random arguments")
        worker = self.local()
        returned = 0

        def anything():
            return random_array(draw) if draw.random() < 0.3 else random_object(draw)

        def nearly():
            shape = draw.choice([(2, 2), (2,), (2, 3), (0, 2), (2, 2, 1), (1, 2)])
            array = numpy.ones(shape, draw.choice(["f4", "f4", "f8", "i8", "e"])) * draw.choice([1, math.nan, 1e30])
            return array[::draw.choice([1, -1])]
        for _ in range(calls):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    pulled = worker.pull("words", [1, 2])
                    draw.choice((
                        lambda: worker.pull("words", anything()), lambda: worker.pull(anything(), [1]),
                        lambda: worker.pull({"words": anything(), "users": [1]}), lambda: worker.pull(anything()),
                        lambda: worker.pull("words", [1], train=anything()),
                        lambda: worker.push(pulled, nearly()), lambda: worker.push(pulled, anything()),
                        lambda: worker.push("words", [1, 2], nearly()), lambda: worker.push("words", anything(), nearly()),
                        lambda: worker.push(anything(), anything()), lambda: worker.push(anything(), [1], nearly()),
                        lambda: worker.store("words", anything(), nearly()), lambda: worker.store("users", [1], nearly()),
                        lambda: worker.prefetch("words", anything()), lambda: worker.advance(anything()),
                        lambda: worker.advance(draw.randrange(3)), lambda: worker.report(auc=anything()),
                        lambda: worker.give_up(), lambda: worker.step(anything()).__enter__().__exit__(None, None, None),
                        lambda: setattr(worker, "state", draw.choice([None, anything()])),
                        lambda: worker.loop(anything(), finish=False), lambda: worker.__exit__))()
                    returned += 1
                except (*MISTAKES, hdps.JobError, RecursionError, MemoryError):
                    pass
                worker.state = None
        harness.figure(f"a worker: {calls} calls with random arguments, {returned} of them right, none ended Python")
        self.assertGreater(returned, calls // 20)
        self.one_step(worker)
        worker.finish()


@unittest.skipIf(why, why)
class Mistakes(Own):
    def test_mistakes_of_calls(self):
        worker = self.local()
        looked = worker.pull("words", [1], train=False)
        old = worker.pull("words", [1])
        worker.advance()
        pulled = worker.pull("words", [1, 2])
        rows = [[1.0, 2.0], [3.0, 4.0]]
        Refused = hdps.JobError
        mistakes = [
            ("an unknown table", Refused, 'no table "word".*did you mean "words".*words, users', lambda: worker.pull("word", [1])),
            ("the table of states", Refused, "no table", lambda: worker.pull(worker.job.to_dict()["tables"][-1]["name"]
                                                                         if "tables" in worker.job.to_dict() else "dense", [1])),
            ("no keys", TypeError, r'pull\("words"\): keys are missing', lambda: worker.pull("words")),
            ("keys twice", TypeError, "keys stand in the dict", lambda: worker.pull({"words": [1]}, [2])),
            ("a number as a table", TypeError, "expected the name of a table, or a dict", lambda: worker.pull(5, [1])),
            ("a table that is no text", TypeError, "name of a table is a int", lambda: worker.pull({5: [1]})),
            ("keys of floats", TypeError, r'pull\("words"\): keys: expected whole numbers, not a float', lambda: worker.pull("words", [0.5])),
            ("keys of texts", TypeError, "whole numbers, not a str", lambda: worker.pull("words", ["a"])),
            ("keys that are a text", TypeError, "keys is a str: expected an array", lambda: worker.pull("words", "a")),
            ("keys that are bytes", TypeError, "numbers are uint8; give int64 or uint64", lambda: worker.pull("words", b"abc")),
            ("a key alone", TypeError, "keys is a int: expected an array", lambda: worker.pull("words", 7)),
            ("a key too large", TypeError, "does not fit in 64 bits", lambda: worker.pull("words", [2 ** 64])),
            ("a key too small", TypeError, "does not fit in 64 bits", lambda: worker.pull("words", [-2 ** 63 - 1])),
            ("lists of unequal lengths", TypeError, "unequal lengths", lambda: worker.pull("words", [[1, 2], [3]])),
            ("a push of nothing", TypeError, r"push\(\): expected what pull\(\) returned", lambda: worker.push("words", [1])),
            ("a push of a list", TypeError, "not list and 1 more", lambda: worker.push([1], rows)),
            ("gradients of another shape", Refused, r'push\("words"\): gradients have the shape \[1, 2\]; expected \[2, 2\]',
             lambda: worker.push(pulled, ONES)),
            ("gradients of another length of rows", Refused, r"the shape \[2, 3\]; expected \[2, 2\]",
             lambda: worker.push(pulled, [[1, 2, 3], [4, 5, 6]])),
            ("gradients in one axis", Refused, r"the shape \[4\]; expected \[2, 2\]", lambda: worker.push(pulled, [1, 2, 3, 4])),
            ("gradients of texts", TypeError, "expected numbers, not a str", lambda: worker.push(pulled, [["a", "b"]] * 2)),
            ("no gradients", TypeError, "gradients is a NoneType", lambda: worker.push(pulled, None)),
            ("a gradient that is NaN", Refused, "words.*not finite|finite", lambda: worker.push(pulled, [[1, math.nan], [1, 1]])),
            ("an infinite gradient", Refused, "finite", lambda: worker.push("words", [1], [[math.inf, 1]])),
            ("a gradient beyond float32", Refused, "finite", lambda: worker.push("words", [1], [[1e300, 1]])),
            ("keys that were not pulled", Refused, "pull", lambda: worker.push("words", [99], ONES)),
            ("another table's keys", Refused, "pull", lambda: worker.push("users", [1], [[1.0, 1.0, 1.0]])),
            ("the rows of a step that is over", Refused, "step 0, which is over", lambda: worker.push(old, ONES)),
            ("rows that were looked at", Refused, "train=False, which only looks", lambda: worker.push(looked, ONES)),
            ("a store of one row for two", Refused, r'store\("words"\): rows have the shape \[1, 2\]; expected \[2, 2\]',
             lambda: worker.store("words", [1, 2], ONES)),
            ("a store of a key twice", Refused, "key 1 .*twice", lambda: worker.store("words", [1, 1], rows)),
            ("a stored NaN", Refused, "not finite", lambda: worker.store("words", [1], [[math.nan, 0]])),
            ("examples below zero", TypeError, "examples is -1: expected a whole number", lambda: worker.advance(-1)),
            ("half an example", TypeError, "examples is 0.5: expected a whole number", lambda: worker.advance(0.5)),
            ("a figure that is a text", TypeError, "auc is a str: expected a number", lambda: worker.report(auc="0.5")),
            ("a report that nobody wants", Refused, "no evaluation is due", lambda: worker.report(auc=0.5)),
            ("a state that is no function", TypeError, "state is a int: expected a function", lambda: setattr(worker, "state", 5)),
            ("an extra that is a text", TypeError, r"checkpoint\(\): extra: expected bytes, not str", lambda: worker.checkpoint("a")),
            ("a step in a step", Refused, r"step\(\) inside of step\(\)", self.nested(worker)),
            ("no data", TypeError, "data is a int: expected batches", lambda: worker.loop(5)),
        ]
        self.raises(mistakes)
        harness.figure(f"a worker: {len(mistakes)} mistakes raise what they should")
        # Nothing of that has ended a step; the step in a step was given up.
        self.assertEqual(worker.clock, 1)
        worker.push(worker.pull("words", [1, 2]), rows)
        worker.advance()
        worker.finish()
        self.assertEqual(harness.summary_of(self.out("run"))["steps"], 2)

    def nested(self, worker):
        def steps():
            with worker.step():
                with worker.step():
                    pass
        return steps

    def test_mistakes_of_beginning(self):
        Refused = hdps.JobError
        out = self.out("never")
        other = {**JOB, "model": {"type": "wide_deep"}}
        used = lambda job, **kwargs: hdps.local(job, out, quiet=True, **kwargs)
        mistakes = [
            ("another model", Refused, 'model.type|data', lambda: used(other)),
            ("no tables", Refused, "tables", lambda: used({"model": {"type": "tables"}})),
            ("no servers", Refused, "servers", lambda: used(JOB, servers=0)),
            ("no workers", Refused, "workers", lambda: used(JOB, workers=0)),
            ("workers below zero", TypeError, "workers", lambda: used(JOB, workers=-1)),
            ("too many threads", Refused, "threads=5000 is out of range", lambda: used(JOB, threads=5000)),
            ("another word for resume", Refused, "resume=yes", lambda: used(JOB, resume="yes")),
            ("no folder", Refused, "--out is missing", lambda: hdps.local(JOB, "", quiet=True)),
            ("a state for two", Refused, "set `state` of each worker", lambda: used(JOB, workers=2, state=bytes)),
            ("a state that is none", TypeError, "state is a int", lambda: used(JOB, state=5)),
            ("hdps.train", Refused, "hdps.join", lambda: hdps.train(JOB, out, quiet=True)),
            ("no address", Refused, "HDPS_SCHEDULER", lambda: hdps.join()),
            ("a wrong address", Refused, "localhost.*tcp", lambda: hdps.join("localhost")),
            ("an address beyond without keys", Refused, "keys", lambda: hdps.join("tcp://192.0.2.1:7000")),
            ("keys that are none", Refused, "nothing", lambda: hdps.join("tcp://127.0.0.1:1", keys=self.out("nothing"))),
            ("a rank below zero", Refused, "rank=-1: expected", lambda: hdps.join("tcp://127.0.0.1:1", rank=-1)),
            ("a rank that is a text", TypeError, "rank", lambda: hdps.join("tcp://127.0.0.1:1", rank="0")),
            ("a job of another kind", Refused, "tables|data", lambda: hdps.join("tcp://127.0.0.1:1", job=other)),
        ]
        with unittest.mock.patch.dict(os.environ):
            for name in ("HDPS_SCHEDULER", "HDPS_KEYS", "RANK", "WORLD_SIZE"):
                os.environ.pop(name, None)
            self.raises(mistakes)
            os.environ["RANK"] = "first"
            with self.assertRaisesRegex(Refused, 'RANK="first" of the environment is no whole number'):
                hdps.join("tcp://127.0.0.1:1")
        self.assertFalse(out.exists())
        harness.figure(f"{len(mistakes) + 1} mistakes of beginning raise what they should")


@unittest.skipIf(why, why)
class Processes(Own):
    """What ends a process, or begins another, with a worker open."""

    def test_an_open_worker_does_not_hold_the_interpreter(self):
        process = self.python(f"""
            import hdps
            worker = hdps.local({JOB!r}, {str(self.out('run'))!r}, quiet=True)
            worker.pull("words", [1])
            worker.state = lambda: worker.clock  # A cycle, which nobody collects.
            """)
        _, said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, said)
        self.assertIn("its program ended before finish()", (self.out("run") / "log" / "train.log").read_text())

    def test_ctrl_c_ends_a_wait(self):
        process = self.python(f"""
            import hdps, signal
            signal.signal(signal.SIGINT, signal.default_int_handler)
            workers = hdps.local({JOB!r}, {str(self.out('run'))!r}, workers=2, quiet=True)
            workers[0].pull("words", [1])
            workers[0].advance()
            print("waits", flush=True)
            workers[0].pull("words", [1])  # For a step of the other worker, which never comes.
            """)
        self.assertEqual(process.stdout.readline(), "waits\n")
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        self.assertTrue(said.rstrip().endswith("KeyboardInterrupt"), said)
        harness.figure(f"Ctrl-C in a wait ends the process in {time.monotonic() - began:.2f} s")

    def test_a_fork_is_refused(self):
        process = self.python(f"""
            import hdps, os
            worker = hdps.local({JOB!r}, {str(self.out('run'))!r}, quiet=True)
            child = os.fork()
            if child == 0:
                try:
                    worker.pull("words", [1])
                except hdps.RunError as error:
                    print(error, flush=True)
                del worker  # It is destroyed in the child, too.
                raise SystemExit
            print(os.waitpid(child, 0)[1], flush=True)
            worker.pull("words", [1])
            worker.advance()
            worker.finish()
            """)
        out, said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, said)
        self.assertRegex(out, "forked.*spawn")
        self.assertEqual(out.splitlines()[-1], "0")


@unittest.skipIf(why, why)
class Daemons(harness.DaemonsCase, Own):
    """Workers that join a scheduler and servers of their own processes."""

    def start_job(self, workers=1, flags=(), **sections):
        job = changed(**{"cluster": {"heartbeat_ms": 100, "dead_after_ms": 2000, "replace_after_s": 30}, **sections})
        self.job = harness.write_job(self.out("job.json"), job)
        self.scheduler = self.start(
            "hdps-scheduler", f"--job={self.job}", f"--out={self.out('run')}", "--listen=tcp://127.0.0.1:0",
            f"--address_file={self.out('address')}", f"--workers={workers}", "--servers=1",
            f"--log_file={self.out('scheduler.log')}", *flags, stderr=subprocess.DEVNULL)
        harness.wait_until(self.out("address").exists, 30, "the scheduler's address")
        self.address = self.out("address").read_text().strip()
        self.server = self.start_server(*flags)

    def start_server(self, *flags):
        return self.start("hdps-server", f"--job={self.job}", f"--scheduler={self.address}",
                          "--listen=tcp://127.0.0.1:0", *flags, stderr=subprocess.DEVNULL)

    def test_the_environment_of_torchrun(self):
        self.start_job(workers=2)
        ranks = []

        def train(environment):
            process = self.python("""
                import hdps
                with hdps.join() as worker:
                    for key in worker.loop(range(worker.rank, 6, worker.workers)):
                        worker.push(worker.pull("words", [key]), [[1.0, 1.0]])
                    print(worker.rank, worker.workers, worker.job.name)
                """, env={**os.environ, "HDPS_SCHEDULER": self.address, **environment})
            out, said = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, said)
            ranks.append((environment["RANK"], out))
        in_threads([lambda rank=rank: train({"RANK": rank, "LOCAL_RANK": "0", "WORLD_SIZE": "2"}) for rank in "10"])
        self.assertEqual(sorted(ranks), [("0", "0 2 own\n"), ("1", "1 2 own\n")])
        self.scheduler.wait(60)
        summary = harness.summary_of(self.out("run"))
        self.assertEqual((self.scheduler.returncode, summary["steps"], summary["examples"]), (0, 3, 6))

    def test_keys(self):
        """A worker with a folder of keys joins, asks for the job and trains; one without a worker's key does not."""
        keys, readers = self.out("keys"), self.out("readers")
        harness.run([harness.program("hdps"), "keygen", f"--out={keys}"])
        shutil.copytree(keys, readers)
        (readers / "worker.key").unlink()
        self.start_job(flags=[f"--keys={keys}"])
        with self.assertRaisesRegex(hdps.JobError, "role worker"):
            hdps.join(self.address, keys=readers)
        with unittest.mock.patch.dict(os.environ, HDPS_SCHEDULER=self.address, HDPS_KEYS=str(keys)):
            with hdps.join() as worker:
                self.assertEqual(worker.job.name, "own")
                self.one_step(worker)
        self.assertEqual(self.scheduler.wait(60), 0)
        self.assertEqual(harness.summary_of(self.out("run"))["steps"], 1)

    def test_a_world_of_another_size(self):
        self.start_job()
        with unittest.mock.patch.dict(os.environ, RANK="0", WORLD_SIZE="3"):
            with self.assertRaisesRegex(hdps.JobError, "WORLD_SIZE=3 of the environment, but the job has 1 workers"):
                hdps.join(self.address)

    def test_the_loop_goes_back(self):
        """A server dies without a copy of its rows: the loop begins again at the checkpoint, by itself."""
        digests, starts = [], []
        steps = 12
        for dies, by_hand in ((False, False), (True, False), (True, True)):
            with self.subTest(dies=dies, by_hand=by_hand):
                self.kill_all()
                self.running.clear()
                self.folder = self.folder / f"dies_{dies}_{by_hand}"
                self.folder.mkdir()
                self.start_job(checkpoint={"every_steps": 5})
                with hdps.join(self.address, state=lambda: b"%d" % worker.clock) as worker:
                    killed = not dies

                    def data(restored):
                        starts.append((dies, restored))
                        return range(int(restored or 0), steps)
                    for step in worker.loop(data):
                        if dies and step >= 8 and worker.restored is None:
                            worker.examples = 5  # Of a batch that is dropped: all others have one.
                        pulled = worker.pull("words", [step % 4])
                        if step == 8 and not killed:
                            killed = True
                            self.saved(5, self.out("scheduler.log"))
                            self.server.kill()
                            self.server.wait()
                            self.server = self.start_server()
                            if by_hand:
                                worker.checkpoint()  # For which advance() waits, and so hears of the death.
                        worker.push(pulled, [[float(step), 1.0]])
                        if by_hand:
                            worker.advance()
                self.scheduler.wait(60)
                summary = harness.summary_of(self.out("run"))
                self.assertEqual((summary["steps"], summary["examples"]), (steps, steps))
                digests.append(summary["digest"])
        self.assertEqual(starts, [(False, None), (True, None), (True, b"5"), (True, None), (True, b"5")])
        self.assertEqual(digests, digests[:1] * 3)

    def test_a_way_back_is_heard_before_the_others_have_obeyed(self):
        """One worker waits for the other's part in a sum of their own, as ranks of torch do, when a server dies."""
        self.start_job(workers=2, checkpoint={"every_steps": 2})
        heard = self.out("heard")
        other = self.python(f"""
            import hdps, pathlib, time
            heard = pathlib.Path({str(heard)!r})
            with hdps.join({self.address!r}, state=lambda: b"%d" % worker.clock) as worker:
                for step in worker.loop(lambda restored: range(int(restored or 0), 6)):
                    pulled = worker.pull("words", [step])
                    if step == 4 and not heard.exists():
                        print("pulled", flush=True)
                        until = time.monotonic() + 60
                        while not heard.exists():
                            assert time.monotonic() < until, "the other worker has heard nothing"
                            time.sleep(0.01)
                    worker.push(pulled, [[1.0, 1.0]])
            """)
        starts = []

        def data(restored):
            starts.append(restored)
            return range(int(restored or 0), 6)
        with hdps.join(self.address, state=lambda: b"%d" % worker.clock) as worker:
            for step in worker.loop(data):
                dies = step == 4 and not heard.exists()
                if dies:
                    self.assertEqual(other.stdout.readline(), "pulled\n")
                    self.saved(2, self.out("scheduler.log"))
                    self.server.kill()
                    self.server.wait()
                    self.server = self.start_server()
                pulled = worker.pull("words", [step])
                if dies:
                    heard.touch()
                worker.push(pulled, [[1.0, 1.0]])
        self.assertEqual((other.wait(60), self.scheduler.wait(60)), (0, 0))
        self.assertEqual(len(starts), 2)
        self.assertEqual(harness.summary_of(self.out("run"))["steps"], 6)

    def test_going_back_without_a_loop(self):
        self.start_job(checkpoint={"every_steps": 2})
        worker = hdps.join(self.address, state=lambda: b"of %d" % worker.clock)
        self.addCleanup(worker.close)
        for _ in range(3):
            self.one_step(worker)
        expected = self.rows(worker)
        self.saved(2, self.out("scheduler.log"))
        self.server.kill()
        self.server.wait()
        self.server = self.start_server()
        with self.assertRaisesRegex(hdps.WentBack, "went back to .*step 2") as raised:
            for _ in range(2):
                self.one_step(worker)
        self.assertEqual((raised.exception.step, raised.exception.restored, worker.clock), (2, b"of 2", 2))
        self.assertEqual(worker.restored, b"of 2")
        self.one_step(worker)
        self.assertEqual(self.rows(worker), expected)
        worker.finish()
        self.scheduler.wait(60)
        self.assertEqual(self.scheduler.returncode, 0)

    def test_going_back_in_an_evaluation_of_finish(self):
        self.start_job(checkpoint={"every_steps": 2}, train={"eval_every_steps": 3})
        worker = hdps.join(self.address, state=lambda: b"of %d" % worker.clock)
        self.addCleanup(worker.close)
        for _ in range(3):
            self.one_step(worker)
        expected = self.rows(worker)
        self.saved(2, self.out("scheduler.log"))

        def evaluate(worker):
            self.server.kill()
            self.server.wait()
            self.server = self.start_server()
            return {"auc": sum(self.rows(worker)[0])}
        with self.assertRaisesRegex(hdps.WentBack, "went back to .*step 2") as raised:
            worker.finish(evaluate)
        self.assertEqual((raised.exception.step, raised.exception.restored, worker.clock), (2, b"of 2", 2))
        self.one_step(worker)
        self.assertEqual(self.rows(worker), expected)
        worker.finish(lambda worker: {"auc": 0.5})
        self.assertEqual(self.scheduler.wait(60), 0)
        self.assertEqual(harness.summary_of(self.out("run"))["steps"], 3)


if __name__ == "__main__":
    harness.main()
