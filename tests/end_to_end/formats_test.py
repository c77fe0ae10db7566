"""Tests TFRecord files and JSON lines as data: the digest of the same rows as text, by the real programs."""
import gzip
import json
import random
import subprocess
import sys
import zlib

import harness
from example_bytes import example, framed

sys.path.append(subprocess.run([harness.ROOT / "scripts" / "install_parquet.sh", "--folder"], capture_output=True,
                               text=True, check=True).stdout.strip())
try:
    import pyarrow
    import pyarrow.parquet
except ImportError:
    pyarrow = None

HDPS = harness.program("hdps")
ROWS, BATCH = 2000, 250


def cell(value):
    if isinstance(value, list):
        return "|".join(value)
    return "" if value is None else str(value)


class Formats(harness.Case):
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
        lines = [",".join(self.rows[0])] + [",".join(map(cell, row.values())) for row in self.rows]
        self.out("rows.csv").write_text("\n".join(lines) + "\n")
        self.json = "".join(json.dumps(row) + "\n" for row in self.rows).encode()
        self.records = b"".join(framed(example(row)) for row in self.rows)
        self.out("rows.jsonl").write_bytes(self.json)
        self.out("rows.tfrecord").write_bytes(self.records)

    def job(self, name, form, train, **data):
        return harness.write_job(self.out(f"{name}.json"), {
            "name": "rows", "data": {
                "format": form, "train": train, "header": form == "csv", "shuffle_rows": 500, "columns": [
                    {"name": "click", "type": "label"}, {"name": "price", "type": "numeric", "transform": "log1p"},
                    {"name": "user"}, {"name": "item"}, {"name": "site"}, {"name": "tags", "type": "multi"}],
                "features": [{"name": "user_site", "from": ["user", "site"]}], **data},
            "model": {"type": "deepfm", "embedding_dim": 4, "hidden": [8], "device": "cpu"},
            "train": {"batch_size": BATCH, "epochs": 2}})

    def digest(self, name, form, train, workers=1, sets=None):
        return harness.train(self.job(name, form, train), self.out(f"run_{name}"), 1, workers, sets)["digest"]

    def test_one_digest_whatever_stores_the_rows(self):
        self.out("rows.tfrecord.gz").write_bytes(gzip.compress(self.records))
        self.out("zlib.tfrecord").write_bytes(zlib.compress(self.records))
        wanted = self.digest("text", "csv", ["rows.csv"])
        found = {name: self.digest(name, form, [name]) for name, form in (
            ("rows.jsonl", "jsonl"), ("rows.tfrecord", "tfrecord"), ("rows.tfrecord.gz", "tfrecord"),
            ("zlib.tfrecord", "tfrecord"))}
        harness.figure(f"rows as text {wanted[:12]}, {({name: digest[:12] for name, digest in found.items()})}")
        self.assertEqual(set(found.values()), {wanted})

    def test_one_digest_for_three_workers_and_resumed(self):
        wanted = self.digest("text3", "csv", ["rows.csv"], 3)
        for name, form in (("rows.jsonl", "jsonl"), ("rows.tfrecord", "tfrecord")):
            stopped = harness.train(self.job(name, form, [name]), self.out(f"run_{name}"), 1, 3, {"train.max_steps": 11})
            self.assertEqual(stopped["steps"], 11)
            self.assertEqual(self.digest(name, form, [name], 3), wanted)

    def test_the_same_rows_are_held_out(self):
        digests, examples = set(), set()
        sources = [("rows.jsonl", "jsonl"), ("rows.tfrecord", "tfrecord")]
        if pyarrow and (harness.BIN / "libhdps_parquet.so").exists():
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(self.rows), self.out("rows.parquet"))
            sources.append(("rows.parquet", "parquet"))
        for name, form in sources:
            job = self.job(name, form, [name], validation_share=0.2)
            done = harness.train(job, self.out(f"run_{name}"))
            digests.add(done["digest"])
            examples.add(done["examples"])
        self.assertEqual((len(digests), len(examples)), (1, 1))
        self.assertNotIn(2 * ROWS, examples)

    def test_prepare_reads_the_columns(self):
        for form in ("jsonl", "tfrecord"):
            out = self.out(f"made_{form}")
            harness.run([HDPS, "prepare", self.out(f"rows.{form}"), f"--out={out}"])
            text = (out / "job.json").read_text()
            for part in (f'"format": "{form}"', '"name": "tags"', '"type": "multi"'):
                self.assertIn(part, text)
            self.assertGreater(harness.train(out / "job.json", self.out(f"run_{form}"))["examples"], 0)

    def test_mistakes_end_the_job_with_place_and_mend(self):
        self.out("cut.tfrecord").write_bytes(self.records[:-7])
        damaged = bytearray(self.records)
        damaged[40] ^= 1
        self.out("damaged.tfrecord").write_bytes(damaged)
        self.out("bad.jsonl").write_bytes(self.json + b'{"click": 1, "user": {"id": 5}}\n')
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
