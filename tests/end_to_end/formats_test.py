"""Tests TFRecord files and JSON lines as data: the digest of the same rows as text and Parquet, by the real programs."""
import gzip
import json
import pathlib
import random
import sys
import tempfile
import unittest
import zlib

import harness
from arrow_package import READS_PARQUET, pyarrow

sys.path.insert(0, str(harness.ROOT / "benchmarks"))
import tfrecords

HDPS = harness.program("hdps")
ROWS, BATCH = 2000, 250
KNOWN_ROWS = 5000  # Of each known log.
FORMATS = ("jsonl", "tfrecord", *(("parquet",) if READS_PARQUET else ()))


def write_rows(folder, name, rows, codec="snappy"):
    """Writes NAME.jsonl, NAME.tfrecord and NAME.parquet."""
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / f"{name}.tfrecord").write_bytes(tfrecords.records(rows))
    if READS_PARQUET:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), folder / f"{name}.parquet", compression=codec)


class Formats(harness.Case):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory(prefix="hdps_rows_") as folder:
            job = harness.write_job(pathlib.Path(folder) / "job.json", {
                "data": {"format": "tfrecord", "train": ["rows.tfrecord"], "columns": [{"name": "y", "type": "label"}]},
                "model": {"type": "logistic"}})
            (pathlib.Path(folder) / "rows.tfrecord").write_bytes(tfrecords.records([{"y": 1}]))
            said = harness.run([HDPS, "train", f"--job={job}", "--out="], expect=None).stderr
        if "which this build of hdps does not read" in said:
            raise unittest.SkipTest("hdps was built without TFRecord files (scripts/install_deps.sh --tensorboard)")

    def digest(self, job, name, workers=1, sets=None):
        return harness.train(job, self.out(f"run_{name}"), 1, workers, sets)["digest"]

    def expect_the_same(self, wanted, found):
        harness.figure(f"rows as text {wanted[:12]}, {({name: digest[:12] for name, digest in found.items()})}")
        self.assertEqual(set(found.values()), {wanted})


class KnownLogs(Formats):
    def test_census(self):
        """Rows of the census: numbers and texts, '?' for missing cells, a label of words; 1 and 3 workers."""
        job = json.loads(harness.CENSUS.read_text())
        job["train"]["epochs"] = 1
        data = job["data"]
        del data["eval"]
        numeric = {column["name"] for column in data["columns"] if column.get("type") == "numeric"}
        with gzip.open(harness.CENSUS.parent / "adult.data.gz", "rt") as file:
            lines = [file.readline() for _ in range(KNOWN_ROWS)]
        self.out("census.csv").write_text("".join(lines))
        cells = [map(str.strip, line.split(",")) for line in lines]
        names = [column["name"] for column in data["columns"]]
        write_rows(self.folder, "census", [
            {name: int(cell) if name in numeric else cell for name, cell in zip(names, row)} for row in cells], "gzip")
        for workers in (1, 3):
            found = {}
            for form in ("csv", *FORMATS):
                of_form = {**job, "data": {**data, "format": form, "train": [f"census.{form}"]}}
                path = harness.write_job(self.out(f"{form}.json"), of_form)
                found[form] = self.digest(path, f"{form}{workers}", workers)
            self.expect_the_same(found.pop("csv"), found)

    def test_a_criteo_log(self):
        """A log of 40 columns, read as the format criteo reads it: whole, and by three workers, resumed in the middle."""
        harness.run([HDPS, "generate", f"--out={self.folder}", f"--rows={KNOWN_ROWS}", "--eval_rows=0"])
        columns = [{"name": "label", "type": "label"}]
        columns += [{"name": f"I{number}", "type": "numeric", "transform": "log1p"} for number in range(1, 14)]
        columns += [{"name": f"C{number}"} for number in range(1, 27)]
        rows = []
        for line in self.out("train.tsv").read_text().splitlines():
            cells = dict(zip((column["name"] for column in columns), line.split("\t")))
            rows.append({name: None if cell == "" else cell if name[0] == "C" else int(cell) for name, cell in cells.items()})
        write_rows(self.folder, "log", rows, "zstd")

        def job(form, **data):
            return harness.write_job(self.out(f"{form}.json"), {
                "name": "log", "data": {"format": form, **data},
                "model": {"type": "deepfm", "embedding_dim": 4, "hidden": [8], "device": "cpu"},
                "train": {"batch_size": BATCH, "epochs": 1}})

        text = job("criteo", train=["train.tsv"])
        jobs = {form: job(form, train=[f"log.{form}"], columns=columns) for form in FORMATS}
        self.expect_the_same(self.digest(text, "criteo"), {form: self.digest(path, form) for form, path in jobs.items()})
        wanted = self.digest(text, "criteo3", 3)
        steps = KNOWN_ROWS // BATCH // 2
        for form, path in jobs.items():
            stopped = harness.train(path, self.out(f"run_{form}3"), 1, 3, {"train.max_steps": steps})
            self.assertEqual(stopped["steps"], steps)
            self.assertEqual(self.digest(path, f"{form}3", 3), wanted)


class MadeRows(Formats):
    def setUp(self):
        super().setUp()
        chance = random.Random(2)
        self.rows = []
        for _ in range(ROWS):
            user, item = chance.randrange(300), chance.randrange(200)
            self.rows.append({
                "click": int(chance.random() < (0.6 if (user + item) % 3 == 0 else 0.2)),
                "price": chance.choice([None, chance.randrange(100000) / 4]),
                "user": user, "item": item << 33, "site": chance.choice([None, f"site {item % 17}", f"s{user % 40}"]),
                "tags": [f"t{chance.randrange(50)}" for _ in range(chance.randrange(4))]})

        def cell(value):
            return "" if value is None else "|".join(value) if isinstance(value, list) else str(value)

        lines = [",".join(self.rows[0])] + [",".join(map(cell, row.values())) for row in self.rows]
        self.out("rows.csv").write_text("\n".join(lines) + "\n")
        write_rows(self.folder, "rows", self.rows)

    def job(self, name, form, train, **data):
        return harness.write_job(self.out(f"{name}.json"), {
            "name": "rows", "data": {
                "format": form, "train": train, "header": form == "csv", "shuffle_rows": 500, "columns": [
                    {"name": "click", "type": "label"}, {"name": "price", "type": "numeric", "transform": "log1p"},
                    {"name": "user"}, {"name": "item"}, {"name": "site"}, {"name": "tags", "type": "multi"}],
                "features": [{"name": "user_site", "from": ["user", "site"]}], **data},
            "model": {"type": "deepfm", "embedding_dim": 4, "hidden": [8], "device": "cpu"},
            "train": {"batch_size": BATCH, "epochs": 2}})

    def test_one_digest_whatever_packs_the_rows(self):
        text, records = (self.out(f"rows.{form}").read_bytes() for form in ("jsonl", "tfrecord"))
        self.out("gzip.jsonl").write_bytes(gzip.compress(text))
        self.out("gzip.tfrecord").write_bytes(gzip.compress(records))
        self.out("zlib.tfrecord").write_bytes(zlib.compress(records))
        found = {name: self.digest(self.job(name, name.split(".")[1], [name]), name) for name in (
            *(f"rows.{form}" for form in FORMATS), "gzip.jsonl", "gzip.tfrecord", "zlib.tfrecord")}
        self.expect_the_same(self.digest(self.job("text", "csv", ["rows.csv"]), "text"), found)

    def test_one_digest_with_negatives_and_kept_rows(self):
        sets = {"data.item_features": '["item","tags"]', "data.negatives": '{"per_positive":2}', "data.cache": "memory"}
        found = {form: self.digest(self.job(form, form, [f"rows.{form}"]), form, 3, sets) for form in FORMATS}
        self.expect_the_same(self.digest(self.job("text", "csv", ["rows.csv"]), "text", 3, sets), found)

    def test_the_same_rows_are_held_out(self):
        """In each format, for any order of the files and number of workers."""
        for name, rows in (("first", self.rows[:777]), ("second", self.rows[777:])):
            write_rows(self.folder, name, rows)
        # With such steps the model stays as it began, so its loss tells which rows were held out.
        still = {f"model.{part}_optimizer": '{"kind":"sgd","learning_rate":1e-30}' for part in ("wide", "deep", "dense")}
        digests, found = set(), set()
        for form in FORMATS:
            orders = [[f"{name}.{form}" for name in order] for order in (("first", "second"), ("second", "first"))]
            jobs = [self.job(f"{form}{number}", form, train, validation_share=0.2) for number, train in enumerate(orders)]
            digests.add(self.digest(jobs[0], form))
            for number, job in enumerate(jobs):
                for workers in (1, 3):
                    done = harness.train(job, self.out(f"run_{form}{number}{workers}"), 1, workers, still)
                    found.add((done["examples"], round(done["eval_logloss"], 9)))
        harness.figure(f"examples trained in two epochs of {ROWS} rows, loss of those held out: {found}")
        self.assertEqual((len(digests), len(found)), (1, 1))
        self.assertLess(found.pop()[0], 2 * ROWS)

    def test_prepare_reads_the_columns(self):
        for form in ("jsonl", "tfrecord"):
            out = self.out(f"made_{form}")
            harness.run([HDPS, "prepare", self.out(f"rows.{form}"), f"--out={out}"])
            text = (out / "job.json").read_text()
            for part in (f'"format": "{form}"', '"name": "tags"', '"type": "multi"'):
                self.assertIn(part, text)
            self.assertGreater(harness.train(out / "job.json", self.out(f"run_{form}"))["examples"], 0)

    def test_mistakes_end_the_job_with_place_and_mend(self):
        records = self.out("rows.tfrecord").read_bytes()
        self.out("cut.tfrecord").write_bytes(records[:-7])
        damaged = bytearray(records)
        damaged[40] ^= 1
        self.out("damaged.tfrecord").write_bytes(damaged)
        self.out("bad.jsonl").write_text(self.out("rows.jsonl").read_text() + '{"click": 1, "user": {"id": 5}}\n')
        for name, form, train, message in (
                ("cut", "tfrecord", ["cut.tfrecord"], f"cut.tfrecord:{ROWS}: this record has "),
                ("damaged", "tfrecord", ["damaged.tfrecord"], "damaged.tfrecord:1: this record, of "),
                ("mixed", "tfrecord", ["rows.tfrecord", "rows.jsonl"], "rows.jsonl: this is no TFRecord file"),
                ("as_text", "csv", ["rows.tfrecord"], "rows.tfrecord: this is a TFRecord file"),
                ("bad", "jsonl", ["bad.jsonl"], f"bad.jsonl:{ROWS + 1}: '{{': expected ")):
            said = harness.train(self.job(name, form, train), self.out("none"), expect=2).stderr
            self.assertIn(message, said)
            self.assertIn("expected ", said)


if __name__ == "__main__":
    harness.main()
