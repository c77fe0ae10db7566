"""Scores rows from Python: with the bits of hdps predict, from arrays, files and threads, and whatever is given."""
import ctypes
import importlib.util
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest
import warnings

import harness
from random_objects import MISTAKES, random_cells, random_object

HDPS = harness.program("hdps")
why = "" if importlib.util.find_spec("hdps") else "the Python package was not built: no pybind11 or Python's headers"
if not why:
    import hdps
try:
    import numpy
except ImportError:
    numpy = None
needs_numpy = unittest.skipIf(numpy is None, "this Python has no NumPy")

ROWS = 600
MIXED = {
    "name": "mixed", "seed": 3,
    "data": {
        "train": ["mixed.csv"],
        "columns": [
            {"name": "y", "type": "label"}, {"name": "user", "vocab_size": 40},
            {"name": "age", "type": "numeric", "transform": "log1p"},
            {"name": "price", "type": "numeric", "transform": "standardize", "mean": 5, "scale": 3},
            {"name": "tags", "type": "multi"}, {"name": "city"}],
        "features": [{"name": "price_range", "kind": "bucketized", "from": ["price"], "boundaries": [2, 4, 8]},
                     {"name": "where", "from": ["city", "price_range"]}]},
    "model": {"type": "deepfm", "embedding_dim": 4, "hidden": [16, 8], "device": "cpu"},
    "train": {"batch_size": 64, "epochs": 2}}


def text_of(cell):
    """A cell as a CSV file has it."""
    if cell is None:
        return ""
    return "|".join(map(text_of, cell)) if isinstance(cell, list) else str(cell)


def mixed_columns(rows, seed):
    draw = random.Random(seed)
    return {
        "user": [draw.randrange(45) for _ in range(rows)],  # Those from 40 on have no row.
        "age": [None if draw.random() < 0.1 else draw.randrange(90) for _ in range(rows)],
        "price": [round(draw.uniform(-2, 12), 3) for _ in range(rows)],
        "tags": [draw.sample(["a", "bb", "c c", "ä"], draw.randrange(4)) for _ in range(rows)],
        "city": [draw.choice(["Oslo", "Rome", "", "15", "Zürich"]) for _ in range(rows)]}


@unittest.skipIf(why, why)
class PythonModel(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.data = pathlib.Path(tempfile.mkdtemp(prefix="hdps_data_"))
        cls.addClassCleanup(shutil.rmtree, cls.data, ignore_errors=True)
        cls.columns = mixed_columns(ROWS, 1)
        draw = random.Random(2)
        cls.write_rows("mixed.csv", cls.columns, labels=[draw.randrange(2) for _ in range(ROWS)])
        cls.rows = mixed_columns(5000, 4)  # More than one batch of a scorer.
        cls.file = cls.write_rows("rows.csv", cls.rows)
        cls.trained = cls.data / "run"
        harness.train(harness.write_job(cls.data / "mixed.json", MIXED), cls.trained)
        cls.model = hdps.Model.open(cls.trained, threads=2)
        cls.scores = cls.model.predict(cls.rows)

    @classmethod
    def write_rows(cls, name, columns, labels=None):
        rows = zip(*([labels] if labels else []), *columns.values())
        path = cls.data / name
        path.write_text("".join(",".join(map(text_of, row)) + "\n" for row in rows))
        return path

    def lines_of(self, run, *files):
        """The lines of hdps predict."""
        return harness.run([HDPS, "predict", f"--checkpoint={run}",
                            *([f"--data={','.join(map(str, files))}"] if files else [])]).stdout.splitlines()

    @staticmethod
    def as_lines(scores):
        rows = scores.tolist()
        return [" ".join("%.9g" % score for score in (row if isinstance(row, list) else [row])) for row in rows]

    def same(self, data, model=None):
        self.assertEqual(bytes((model or self.model).predict(data)), bytes(self.scores))

    def test_predictions_are_those_of_the_command(self):
        self.assertEqual(self.as_lines(self.scores), self.lines_of(self.trained, self.file))
        self.assertEqual((self.scores.dtype, self.scores.shape, len(self.scores)), ("float32", (5000,), 5000))
        for data in (self.file, str(self.file), [self.file], (str(self.file),)):
            self.same(data)
        self.assertEqual(self.as_lines(self.model.predict([self.file, self.file])),
                         2 * self.as_lines(self.scores))
        # However a value is stored.
        self.same({name: [text_of(cell) for cell in cells] for name, cells in self.rows.items()})
        self.same({name: tuple(cells) for name, cells in self.rows.items()})
        self.same({**self.rows, "extra": "looked at by nobody", "city": [c.encode() for c in self.rows["city"]]})
        self.assertEqual(self.model.predict({name: [] for name in self.rows}).shape, (0,))
        self.assertEqual(bytes(self.model.predict({name: cells[3:7] for name, cells in self.rows.items()})),
                         bytes(self.scores)[12:28], "a row depends on the rows beside it")
        self.assertEqual(bytes(self.model.predict({name: cells[7:8] for name, cells in self.rows.items()})),
                         bytes(self.scores)[28:32], "a lone row has other bits")

    def test_logits(self):
        import math
        logits = self.model.logits(self.rows)
        self.assertEqual(logits.shape, self.scores.shape)
        for logit, score in zip(logits.tolist(), self.scores.tolist()):
            # Rounded once to a float of 24 bits.
            self.assertAlmostEqual(1 / (1 + math.exp(-logit)), score, delta=2 ** -23)

    def test_examples(self):
        """Census with texts of its file, two tasks, and histories; shapes of several scores."""
        for name, tasks in (("census/census", 1), ("recipes/mmoe", 2), ("recipes/din", 1)):
            with self.subTest(name):
                job = harness.ROOT / "examples" / f"{name}.json"
                run = self.out(job.stem)
                harness.train(job, run, sets={"train.max_steps": 20, "train.eval_each_epoch": False})
                model = hdps.Model.open(run)
                settings = model.job.to_dict()["data"]
                source = (job.parent / json.loads(job.read_text())["data"]["eval"][0]).resolve()
                columns = settings["columns"]
                scores = model.predict(source)
                self.assertEqual(scores.shape[1:], (tasks,) if tasks > 1 else ())
                self.assertEqual(self.as_lines(scores), self.lines_of(run, source))
                self.assertEqual(model.logits(source).shape, scores.shape)
                import gzip
                with gzip.open(source, "rt") as file:
                    rows = [line.rstrip("\n").split(",") for line in file
                            if line.strip() and not line.startswith("|")]
                data = {c["name"]: [row[i] for row in rows] for i, c in enumerate(columns) if c["type"] != "label"}
                self.assertEqual(bytes(model.predict(data)), bytes(scores))
                for c in columns:
                    if c["type"] == "numeric":
                        data[c["name"]] = [int(cell) for cell in data[c["name"]]]
                self.assertEqual(bytes(model.predict(data)), bytes(scores))

    @needs_numpy
    def test_arrays(self):
        users = numpy.array(self.rows["user"])
        for dtype in ("int8", "uint8", "int16", ">i4", "int32", "uint64", "int64", "U3", "S3", "O"):
            self.same({**self.rows, "user": users.astype(dtype)})
        self.same({**self.rows, "user": numpy.repeat(users, 2)[::2]})
        self.same({**self.rows, "user": users[::-1].copy()[::-1]})
        self.same({**self.rows, "price": numpy.array(self.rows["price"])})
        self.same({**self.rows, "price": numpy.array(self.rows["price"]).astype(">f8")})
        ages = numpy.array([numpy.nan if age is None else age for age in self.rows["age"]])
        for dtype in ("float64", "float32", "float16", "O"):
            self.same({**self.rows, "age": ages.astype(dtype)})
        self.same({**self.rows, "city": numpy.array(self.rows["city"])})
        self.same({**self.rows, "city": numpy.array([c.encode() for c in self.rows["city"]])})
        two = {**self.rows, "tags": [["a", "bb"]] * 5000}
        self.assertEqual(bytes(self.model.predict({**two, "tags": numpy.array(two["tags"])})),
                         bytes(self.model.predict(two)))
        self.assertEqual(self.model.predict({name: numpy.array(cells[:1], dtype="O")
                                             for name, cells in self.rows.items()}).shape, (1,))

    @needs_numpy
    def test_arrays_are_not_copied(self):
        rows = self.model.lookup("deep", feature="city", values=["Oslo", "Rome", "nowhere"])
        self.assertEqual((rows.shape, rows.dtype), ((3, 4), "float32"))
        view = numpy.asarray(rows)
        held = memoryview(rows)
        address = ctypes.addressof(ctypes.c_char.from_buffer_copy(held)) and view.ctypes.data
        self.assertEqual(view.tolist(), rows.tolist())
        self.assertFalse(view.flags.writeable)
        self.assertEqual(numpy.asarray(rows).ctypes.data, address)
        taken = numpy.from_dlpack(rows)
        self.assertEqual(taken.ctypes.data, address)
        self.assertEqual(taken.tolist(), rows.tolist())
        self.assertEqual(rows.__dlpack_device__(), (1, 0))
        del rows, view, held
        self.assertEqual(len(taken.tolist()), 3, "a view keeps the numbers")

    def capsule(self, array, name, **arguments):
        """The struct in a capsule of DLPack: its version, flags, address and shape."""
        capsule = array.__dlpack__(**arguments)
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        at = get(capsule, name)
        words = ctypes.cast(at, ctypes.POINTER(ctypes.c_uint64))
        tensor = words[4:10] if name.endswith(b"versioned") else words[0:6]
        lengths = ctypes.cast(tensor[4 - 1], ctypes.POINTER(ctypes.c_int64))
        return {"version": words[0] & 0xffffffff, "flags": words[3], "data": tensor[0], "axes": tensor[2] & 0xffffffff,
                "type": tensor[2] >> 32, "rows": lengths[0]}

    def test_dlpack(self):
        keys = self.model.keys("city", ["Oslo", "Rome"])
        old = self.capsule(keys, b"dltensor")
        new = self.capsule(keys, b"dltensor_versioned", max_version=(1, 0))
        own = self.capsule(keys, b"dltensor_versioned", max_version=(2, 0), copy=True)
        self.assertEqual((new["version"], new["flags"], own["flags"]), (1, 1, 2), "read-only, or a copy")
        for found in (old, new, own):
            self.assertEqual((found["axes"], found["rows"]), (1, 2))
            self.assertEqual(found["type"], 1 << 16 | 64 << 8 | 1, "uint64, one lane")
        self.assertEqual(old["data"], new["data"])
        self.assertNotEqual(own["data"], new["data"])
        self.capsule(keys, b"dltensor", max_version=(0, 8))
        for mistake in ({"stream": 1}, {"dl_device": (2, 0)}):
            with self.assertRaises(BufferError):
                keys.__dlpack__(**mistake)
        with self.assertRaises(TypeError):
            memoryview(keys)[0] = 1

    def test_tables(self):
        tables = self.model.tables
        self.assertEqual({name: table["dim"] for name, table in tables.items()}, {"wide": 1, "deep": 4})
        self.assertGreater(tables["deep"]["rows"], 40)
        name = "deep"
        keys = self.model.keys("city", ["Oslo", b"Oslo", " Oslo", "nowhere"])
        self.assertEqual(keys.dtype, "uint64")
        oslo, again, trimmed, nowhere = keys.tolist()
        self.assertEqual((oslo, oslo), (again, trimmed))
        self.assertEqual(self.model.keys("user", [7]).tolist(), self.model.keys("user", ["7"]).tolist())
        for given in ([oslo, nowhere], keys.tolist()[2:], [oslo - 2 ** 64 if oslo >= 2 ** 63 else oslo, nowhere]):
            self.assertEqual(self.model.contains(name, keys=given), [True, False])
        rows = self.model.lookup(name, keys=[oslo, nowhere])
        self.assertEqual(rows.tolist(), self.model.lookup(name, feature="city", values=["Oslo", "nowhere"]).tolist())
        said = harness.run([HDPS, "inspect", f"--checkpoint={self.trained}", f"--row={name}:{oslo}"]).stdout
        self.assertIn(" ".join("%.9g" % weight for weight in rows.tolist()[0]), " ".join(said.split()))
        zero = hdps.Model.open(self.trained, unknown="zero")
        self.assertEqual(zero.lookup(name, keys=keys).tolist(), [rows.tolist()[0]] * 3 + [[0.0] * len(rows.tolist()[0])])
        self.assertNotEqual(rows.tolist()[1], [0.0] * len(rows.tolist()[0]))
        self.assertEqual(self.as_lines(zero.predict(self.file)), harness.run(
            [HDPS, "predict", f"--checkpoint={self.trained}", f"--data={self.file}", "--unknown=zero"]).stdout.splitlines())
        self.assertEqual(self.model.checkpoint, zero.checkpoint)
        self.assertIn(f"step_{self.model.step:010}", self.model.checkpoint)
        self.assertEqual(self.model.job.name, "mixed")

    def test_threads(self):
        found = []
        threads = [threading.Thread(target=lambda: found.extend(bytes(self.model.predict(self.rows)) for _ in range(5)))
                   for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(set(found), {bytes(self.scores)})
        self.assertEqual(len(found), 20)

    def test_a_fork_is_refused(self):
        code = f"""
            import os, hdps
            model = hdps.Model.open({str(self.trained)!r}, threads=2)
            child = os.fork()
            if child == 0:
                try:
                    model.keys("city", ["Oslo"])
                except hdps.RunError as error:
                    print(error)
                raise SystemExit  # The model is destroyed in the child, too.
            print(os.waitpid(child, 0)[1])
            """
        done = harness.run([sys.executable, "-c", textwrap.dedent(code)], timeout=60)
        self.assertIn("forked", done.stdout)
        self.assertEqual(done.stdout.splitlines()[-1], "0")

    def test_mistakes(self):
        rows, model = self.rows, self.model
        without = {name: cells for name, cells in rows.items() if name not in ("age", "city")}
        table = "deep"
        for call, kind, *said in (
                (lambda: model.predict(without), hdps.JobError, '"age", "city"', "lack the columns"),
                (lambda: model.predict({**rows, "age": rows["age"][1:]}), hdps.JobError, "'age' has 4999 rows"),
                (lambda: model.predict({**rows, "age": ["old"] + rows["age"][1:]}), hdps.JobError, "'old'", "age"),
                (lambda: model.predict({**rows, "city": [0.5] * 5000}), hdps.JobError, "city", "float"),
                (lambda: model.predict({**rows, "city": "Oslo"}), TypeError, "'city' is a str"),
                (lambda: model.predict({**rows, "city": b"Oslo"}), TypeError, "'city' is a bytes"),
                (lambda: model.predict({**rows, "age": 7}), TypeError, "'age' is a int"),
                (lambda: model.predict({**rows, "city": [{}] * 5000}), TypeError, "row 0", "dict"),
                (lambda: model.predict({**rows, "city": ["a", 0.5] * 2500}), TypeError, "row 1", "mixed"),
                (lambda: model.predict({**rows, "tags": [["a"], "b"] * 2500}), TypeError, "row 1", "mixed"),
                (lambda: model.predict({**rows, "tags": [[["a"]]] * 5000}), TypeError, "list in a list"),
                (lambda: model.predict({**rows, "city": ["\ud800"] * 5000}), UnicodeError),
                (lambda: model.predict(7), TypeError, "a int has no rows"),
                (lambda: model.predict(None), TypeError, "has no rows"),
                (lambda: model.predict([1, 2]), TypeError, "has no rows"),
                (lambda: model.predict([]), hdps.JobError, "no data file"),
                (lambda: model.predict("nothing.csv"), hdps.JobError, "nothing.csv"),
                (lambda: model.keys("cty", ["a"]), hdps.JobError, 'did you mean "city"?'),
                (lambda: model.keys("where", ["a"]), hdps.JobError, "made of other columns"),
                (lambda: model.keys("user", [3, 41]), hdps.JobError, "row 1", "0 to 39"),
                (lambda: model.keys("city", [0.5]), hdps.JobError, "float"),
                (lambda: model.keys("city", 5), TypeError, "'city' is a int"),
                (lambda: model.lookup("dep", keys=[1]), hdps.JobError, 'did you mean "deep"?'),
                (lambda: model.lookup(table), TypeError, "keys=..."),
                (lambda: model.lookup(table, keys=[1], feature="city"), TypeError, "keys=..."),
                (lambda: model.lookup(table, keys=["a"]), TypeError),
                (lambda: model.lookup(table, keys=[2 ** 64]), (OverflowError, ValueError, TypeError, RuntimeError)),
                (lambda: model.lookup(table, feature="price", values=[1]), hdps.JobError, "no feature"),
                (lambda: hdps.Model.open(self.trained, which="bst"), hdps.JobError, 'did you mean "best"?'),
                (lambda: hdps.Model.open(self.trained, unknown="zeros"), hdps.JobError, 'did you mean "zero"?'),
                (lambda: hdps.Model.open(self.trained, threads=-1), hdps.JobError, "threads=-1"),
                (lambda: hdps.Model.open(self.data), hdps.HdpsError, str(self.data)),
                (lambda: hdps.Model(), TypeError)):
            with self.assertRaises(kind) as raised:
                call()
            for part in said:
                self.assertIn(part, str(raised.exception))

    def test_whatever_is_given(self):
        """No argument ends the interpreter, and each wrong one raises an exception of a mistake."""
        draw = random.Random(36)
        calls = harness.asked("HDPS_PYTHON_FUZZ", 2000, 50000, "calls with random arguments")
        table = "deep"
        returned = 0
        for _ in range(calls):
            columns = {name: random_cells(draw, draw.choice((0, 1, 2, 7))) if draw.random() < 0.4
                       else cells[:7] for name, cells in self.rows.items()}
            anything = random_object(draw)
            call = draw.choice((
                lambda: self.model.predict(columns), lambda: self.model.logits(columns),
                lambda: self.model.predict(anything), lambda: self.model.keys("city", anything),
                lambda: self.model.keys("user", random_cells(draw, 3)), lambda: self.model.keys(anything, ["a"]),
                lambda: self.model.lookup(table, keys=anything), lambda: self.model.contains(anything, keys=[1]),
                lambda: self.model.lookup(table, feature=anything, values=["a"]),
                lambda: self.scores.__dlpack__(max_version=anything, copy=random_object(draw)),
                lambda: hdps.Model.open(anything)))
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # Those of NumPy, about truths of arrays.
                    call()
                returned += 1
            except (*MISTAKES, hdps.HdpsError):
                pass
        harness.figure(f"python: {calls} calls with random arguments, {returned} of them right, none ended Python")
        self.assertGreater(returned, calls // 50)
        self.same(self.rows)


@unittest.skipIf(why, why)
class OtherPrograms(harness.Case):
    """Vectors of a two_tower model, and exports."""

    def setUp(self):
        super().setUp()
        draw = random.Random(5)
        self.rows = {"user": [f"u{draw.randrange(30)}" for _ in range(900)],
                     "item": [draw.randrange(50) for _ in range(900)], "tag": [draw.choice("abc") for _ in range(900)]}
        self.out("log.csv").write_text("".join(
            f"{i % 2},{user},{item},{tag}\n" for i, (user, item, tag) in enumerate(zip(*self.rows.values()))))
        job = {"data": {"train": ["log.csv"], "columns": [
                   {"name": "y", "type": "label"}, {"name": "user"}, {"name": "item"}, {"name": "tag"}]},
               "model": {"type": "two_tower", "user_features": ["user"], "item_features": ["item", "tag"],
                         "hidden": [16, 8], "embedding_dim": 4, "device": "cpu"}, "train": {"epochs": 2}}
        hdps.train(hdps.Job.load(harness.write_job(self.out("job.json"), job)), self.out("run"), quiet=True)
        self.model = hdps.Model.open(self.out("run"), unknown="zero")

    def test_products_of_vectors_are_logits(self):
        items = self.model.item_vectors({"item": self.rows["item"], "tag": self.rows["tag"]})
        users = self.model.user_vectors({"user": self.rows["user"]})
        self.assertEqual((items.shape, users.shape), ((900, 8), (900, 8)))
        products = [sum(a * b for a, b in zip(*vectors)) for vectors in zip(items.tolist(), users.tolist())]
        logits = self.model.logits(self.rows).tolist()
        bias = logits[0] - products[0]
        apart = max(abs(product + bias - logit) for product, logit in zip(products, logits))
        harness.figure(f"products of vectors plus the bias are at most {apart:.3g} from logits")
        # Sums of 8 products of at most 10 (the inverse of the temperature), in floats of 2^-24.
        self.assertLessEqual(apart, 2 * 8 * 10 * 2**-24 * 10)
        lengths = [sum(a * a for a in vector) for vector in items.tolist()]
        self.assertLess(max(abs(length - 1) for length in lengths), 1e-6)

    def test_mistakes(self):
        with self.assertRaisesRegex(hdps.JobError, 'lack the columns? "tag"'):
            self.model.item_vectors({"item": [1]})
        with self.assertRaisesRegex(hdps.JobError, 'format=onx: expected one of .* did you mean "onnx"'):
            self.model.export(self.out("x"), format="onx")
        with self.assertRaisesRegex(hdps.JobError, 'weights="f8": expected "f32", "f16" or "bf16"'):
            hdps.export(self.out("run"), self.out("x"), weights="f8")
        with self.assertRaises(TypeError):
            self.model.export(self.out("x"), max_rows="many")
        with self.assertRaises(TypeError):
            self.model.item_vectors(7)
        self.assertFalse(self.out("x").exists())

    def test_exports_are_those_of_the_command(self):
        self.model.export(self.out("here"), data=self.out("log.csv"))
        harness.run([HDPS, "export", f"--checkpoint={self.out('run')}", "--format=safetensors",
                     f"--data={self.out('log.csv')}", f"--out={self.out('there')}"])
        for name in ("model.safetensors", "check.safetensors"):
            self.assertEqual((self.out("here") / name).read_bytes(), (self.out("there") / name).read_bytes(), name)
        with self.assertRaisesRegex(hdps.JobError, "exists; give another folder"):
            self.model.export(self.out("here"))


if __name__ == "__main__":
    harness.main()
