"""Trains on tables of this process: with the digest of the command line on a CSV file of the same values."""
import importlib
import importlib.util
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

import harness

why = "" if importlib.util.find_spec("hdps") else "the Python package was not built: no pybind11 or Python's headers"
if not why:
    import hdps

JOB = {
    "seed": 5,
    "data": {
        "train": ["train.csv"], "eval": ["eval.csv"], "header": True, "shuffle_rows": 500, "max_bad_rows": 30,
        "columns": [
            {"name": "click", "type": "label", "positive": ["yes"]}, {"name": "user"},
            {"name": "age", "type": "numeric", "transform": "log1p"}, {"name": "new", "type": "numeric"},
            {"name": "city"}, {"name": "tags", "type": "multi"}, {"name": "item", "vocab_size": 30}],
        "features": [{"name": "where", "kind": "crossed", "from": ["city", "user"]}]},
    "model": {"type": "deepfm", "embedding_dim": 4, "hidden": [8], "device": "cpu"},
    "train": {"batch_size": 64, "epochs": 2}}
SHARE = {"data.validation_share": 0.25, "data.eval": []}


def text_of(cell):
    """A cell as a CSV file has it: floats and integers as Python writes them."""
    if isinstance(cell, list):
        return "|".join(cell)
    if isinstance(cell, bool):
        return str(int(cell))
    return "" if cell is None else f'"{cell}"' if isinstance(cell, str) and "," in cell else str(cell)


def columns(rows, seed):
    draw = random.Random(seed)
    return {  # In the order of the job, because the columns of a dict are taken in it.
        "click": [draw.choice(["yes", "no"]) for _ in range(rows)],
        "user": [None if draw.random() < 0.05 else draw.randrange(-20, 20) for _ in range(rows)],
        "age": [None if draw.random() < 0.1 else draw.randrange(400) / 4 for _ in range(rows)],
        "new": [draw.random() < 0.5 for _ in range(rows)],
        "city": [draw.choice(["Oslo", "Rome, the city", "Zürich", "far beyond twelve bytes"]) for _ in range(rows)],
        "tags": [draw.sample(["a", "bb", "ä"], draw.randrange(4)) for _ in range(rows)],
        "item": [-1 if i % 100 == 99 else draw.randrange(35) for i in range(rows)]}  # -1: a bad row.


def write_csv(path, table):
    lines = [",".join(table)] + [",".join(map(text_of, row)) for row in zip(*table.values())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def install(folder, *names):
    """Installs packages from PyPI into the folder; returns why that was impossible."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), *names]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900)
    return "" if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


@unittest.skipIf(why, why)
class Tables(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.data = pathlib.Path(tempfile.mkdtemp(prefix="hdps_tables_"))
        cls.addClassCleanup(shutil.rmtree, cls.data, ignore_errors=True)
        cls.rows, cls.eval_rows = columns(1500, 1), columns(400, 2)
        write_csv(cls.data / "train.csv", cls.rows)
        write_csv(cls.data / "eval.csv", cls.eval_rows)
        cls.job_file = harness.write_job(cls.data / "job.json", JOB)
        cls.expected = harness.train(cls.job_file, cls.data / "run")
        cls.expected_share = harness.train(cls.job_file, cls.data / "share", workers=2, sets=SHARE)

    def train(self, name, sets=None, **kwargs):
        job = hdps.Job.load(self.job_file, sets or {})
        return hdps.train(job, self.out(name), threads=1, quiet=True, **kwargs)

    def expect_same(self, table, eval_table):
        """Trains on both tables, and on one with a share held out, and compares with the command."""
        both = self.train("both", train=table, eval=eval_table)
        for key in ("digest", "eval_auc", "bad_rows", "steps"):
            self.assertEqual(both[key], self.expected[key], key)
        self.assertEqual(self.train("eval_of_files", train=table)["eval_auc"], self.expected["eval_auc"])
        share = self.train("share", SHARE, train=table, workers=2)
        for key in ("digest", "validation_auc", "bad_rows"):
            self.assertEqual(share.get(key), self.expected_share.get(key), key)

    def test_a_dict_of_columns(self):
        self.expect_same(self.rows, self.eval_rows)
        other = dict(self.rows, city=["Rome"] * 1500)
        self.assertNotEqual(self.train("other", train=other)["digest"], self.expected["digest"])

    def test_a_job_needs_no_file_beside_a_table(self):
        settings = dict(JOB, data={key: JOB["data"][key] for key in JOB["data"] if key not in ("train", "eval")})
        summary = hdps.train(settings, self.out("run"), train=self.rows, threads=1, quiet=True)
        self.assertEqual(summary["digest"], self.expected["digest"])

    def test_evaluation_sets_of_tables(self):
        late = columns(150, 3)
        write_csv(self.data / "late.csv", late)
        of_files = {"data.eval_sets": [{"name": "late", "files": ["late.csv"]}, {"name": "eval too", "files": ["eval.csv"]}]}
        expected = self.train("files", of_files)
        summary = self.train("tables", train=self.rows, eval=self.eval_rows,
                             eval_sets={"late": late, "eval too": self.eval_rows})
        for key in ("digest", "eval_auc", "eval_sets"):
            self.assertEqual(summary[key], expected[key], key)
        self.assertEqual(summary["eval_sets"].keys(), {"eval", "late", "eval too"})
        # They stand in the place of all sets of the job, beside files of the others.
        beside = self.train("beside", of_files, eval_sets={"late": late})
        self.assertEqual(beside["eval_sets"]["late"], expected["eval_sets"]["late"])
        self.assertEqual(beside["eval_sets"].keys(), {"eval", "late"})
        lacking = {name: cells for name, cells in late.items() if name != "city"}
        for sets, error, needle in (
                ([late], TypeError, "eval_sets: expected a dict"), ({1: late}, TypeError, "eval_sets: expected a dict"),
                ({"late": 5}, TypeError, "__arrow_c_stream__|columns"), ({"eval": late}, hdps.JobError, "eval"),
                ({"late": lacking}, hdps.JobError, "'?\"?city"), ({"": late}, hdps.JobError, "name")):
            with self.subTest(needle), self.assertRaisesRegex(error, needle):
                self.train("mistake", eval_sets=sets)

    def library(self, name):
        """Returns the module, which is installed from PyPI where long tests run."""
        try:
            return importlib.import_module(name)
        except ImportError:
            pass
        if harness.SHARE:
            self.skipTest(f"{name} is not installed, and this run installs nothing from PyPI")
        folder = self.data / "packages"
        # pandas exports its tables by pyarrow.
        refused = install(folder, name, *(["pyarrow"] if name == "pandas" else []))
        if refused:
            self.skipTest(f"{name} cannot be installed from PyPI: {refused}")
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
        return importlib.import_module(name)

    def test_pyarrow(self):
        pyarrow = self.library("pyarrow")

        def table_of(rows):
            whole = pyarrow.table(rows)
            # Slices of many batches, and texts by a dictionary.
            cut = pyarrow.concat_tables([whole.slice(0, 301), whole.slice(301, 0), whole.slice(301)])
            at = cut.column_names.index("city")
            return cut.set_column(at, "city", cut["city"].dictionary_encode())

        self.expect_same(table_of(self.rows), table_of(self.eval_rows))
        unused = pyarrow.array([None] * 1500, pyarrow.timestamp("us"))
        batches = table_of(self.rows).append_column("unused", unused).to_batches(max_chunksize=97)
        reader = pyarrow.RecordBatchReader.from_batches(batches[0].schema, batches)
        self.assertEqual(self.train("reader", train=reader)["digest"], self.expected["digest"])
        with self.assertRaisesRegex(hdps.JobError, "no example that could be read"):
            self.train("twice", train=reader)
        dates = pyarrow.table(dict(self.rows, age=pyarrow.array([0] * 1500, pyarrow.date32())))
        with self.assertRaisesRegex(hdps.JobError, "memory:train: column 'age' has the type date: expected integers"):
            self.train("dates", train=dates)

    def test_polars(self):
        polars = self.library("polars")
        frame = polars.DataFrame(self.rows)
        self.expect_same(frame, polars.DataFrame(self.eval_rows))
        words = frame.with_columns(polars.col("city").cast(polars.Categorical), polars.col("user").cast(polars.Int8))
        self.assertEqual(self.train("words", train=words)["digest"], self.expected["digest"])

    def test_duckdb(self):
        duckdb = self.library("duckdb")
        connection = duckdb.connect()

        def relation(name):
            # Lists are texts with a separator here.
            types = {"click": "VARCHAR", "city": "VARCHAR", "tags": "VARCHAR", "user": "INTEGER", "age": "DOUBLE",
                     "item": "BIGINT", "new": "UTINYINT"}
            return connection.sql(f"select * from read_csv('{self.data / name}', header = true, types = {types})")

        self.expect_same(relation("train.csv"), relation("eval.csv"))

    def test_pandas(self):
        pandas = self.library("pandas")

        def frame(rows):
            made = pandas.DataFrame({name: cells for name, cells in rows.items() if name != "user"})
            return made.assign(user=pandas.array(rows["user"], dtype="Int64"), city=made["city"].astype("category"))

        self.assertEqual(self.train("frame", train=frame(self.rows))["digest"], self.expected["digest"])
        floats = pandas.DataFrame(self.rows)  # Integers with missing values became floats.
        with self.assertRaisesRegex(hdps.JobError, "column 'user' has the type float64.*Int64"):
            self.train("floats", train=floats)

    def test_mistakes(self):
        lacking = {name: cells for name, cells in self.rows.items() if name != "city"}
        with self.assertRaisesRegex(hdps.JobError, '"city"'):
            self.train("lacking", train=lacking)
        with self.assertRaises(TypeError):
            self.train("number", train=5)
        bad = dict(self.rows, age=["old"] + [text_of(age) for age in self.rows["age"][1:]])
        with self.assertRaisesRegex(hdps.JobError,
                                    r"memory:train row 0: 'old': expected a number in column 'age'"):
            self.train("bad", {"data.max_bad_rows": 0}, train=bad)
        with self.assertRaisesRegex(hdps.JobError, "data.format is criteo"):
            self.train("criteo", {"data.format": "criteo", "data.columns": [], "data.features": []},
                       train=self.rows)
        command = harness.run([harness.program("hdps"), "train", f"--job={self.job_file}",
                               f"--out={self.out('command')}", '--set=data.train=["memory:train"]'], expect=2)
        self.assertIn("it names a table in the memory of a program", command.stderr)


if __name__ == "__main__":
    harness.main()
