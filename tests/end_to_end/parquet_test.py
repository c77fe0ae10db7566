"""Tests Parquet files as data: the digest of the same rows as text, whatever stores them, by the real programs."""
import decimal
import pathlib
import random
import shutil
import unittest

import harness
from arrow_package import READS_PARQUET, pyarrow

HDPS = harness.program("hdps")
ROWS, BATCH = 3000, 250
MEBI = 1 << 20
CODECS = ("none", "snappy", "gzip", "brotli", "zstd", "lz4")
OTHERS = pathlib.Path(__file__).parent / "parquet_files"
NEEDS_MODULE = unittest.skipUnless(
    READS_PARQUET, "there is no pyarrow, or no libhdps_parquet.so built with it (scripts/install_parquet.sh)")


def cell(value):
    """The text of a value by the rules of docs/data.md; lists joined by the default separator."""
    if isinstance(value, list):
        return "|".join(map(cell, value))
    if value is None or value != value:
        return ""
    return value.decode(errors="surrogateescape") if isinstance(value, bytes) else str(int(value) if isinstance(value, bool) else value)


def write_csv(path, table, names):
    lines = [",".join(names)]
    for row in zip(*(table[name].to_pylist() for name in names)):
        cells = [cell(value).replace('"', '""') for value in row]
        lines.append(",".join(f'"{text}"' if set(text) & set(',"') else text for text in cells))
    path.write_text("\n".join(lines) + "\n", errors="surrogateescape")


@NEEDS_MODULE
class Parquet(harness.Case):
    def setUp(self):
        super().setUp()
        chance = random.Random(2)
        names = ("click", "hour", "price", "user", "item", "site", "tags")
        rows = {name: [] for name in names}
        for _ in range(ROWS):
            user, item = chance.randrange(300), chance.randrange(200)
            rows["click"].append(int(chance.random() < (0.6 if (user + item) % 3 == 0 else 0.2)))
            rows["hour"].append(chance.choice([None, *range(24)]))
            rows["price"].append(chance.choice([None, decimal.Decimal(chance.randrange(100000)).scaleb(-2)]))
            rows["user"].append(user)
            rows["item"].append(item << 33)
            rows["site"].append(chance.choice([None, f"site, {item % 17}", f"s{user % 40}"]))
            rows["tags"].append([f"t{chance.randrange(50)}" for _ in range(chance.randrange(4))])
        self.table = pyarrow.table(rows, schema=pyarrow.schema([
            ("click", pyarrow.int8()), ("hour", pyarrow.int32()), ("price", pyarrow.decimal128(9, 2)),
            ("user", pyarrow.int32()), ("item", pyarrow.int64()), ("site", pyarrow.string()),
            ("tags", pyarrow.list_(pyarrow.string()))]))
        write_csv(self.out("rows.csv"), self.table, list(names))
        self.write("rows.parquet")
        self.data = {
            "shuffle_rows": 500, "columns": [
                {"name": "click", "type": "label"}, {"name": "hour", "type": "numeric", "transform": "log1p"},
                {"name": "price", "type": "numeric"}, {"name": "user"}, {"name": "item"}, {"name": "site"},
                {"name": "tags", "type": "multi"}],
            "features": [{"name": "user_site", "from": ["user", "site"]}]}
        self.text = self.job("text", format="csv", header=True, train=["rows.csv"])
        self.parquet = self.job("parquet", train=["rows.parquet"])

    def write(self, name, table=None, **settings):
        settings = {"row_group_size": 700, **settings}
        pyarrow.parquet.write_table(self.table if table is None else table, self.out(name), **settings)

    def job(self, name, **data):
        return harness.write_job(self.out(f"{name}.json"), {
            "name": "rows", "data": {"format": "parquet", **self.data, **data},
            "model": {"type": "deepfm", "embedding_dim": 4, "hidden": [8], "device": "cpu"},
            "train": {"batch_size": BATCH, "epochs": 2}})

    def digest(self, job, name, workers=1, sets=None):
        return harness.train(job, self.out(f"run_{name}"), 1, workers, sets)["digest"]

    def test_one_digest_whatever_stores_the_rows(self):
        """Six codecs; texts as dictionaries; other widths of integers; several files: the digest of the text."""
        wanted = self.digest(self.text, "text")
        found = {}
        for codec in CODECS:
            self.write(f"{codec}.parquet", compression=codec)
            found[codec] = self.digest(self.job(codec, train=[f"{codec}.parquet"]), codec)
        other = self.table.set_column(5, "site", self.table["site"].dictionary_encode())
        other = other.set_column(3, "user", self.table["user"].cast(pyarrow.int64()))
        other = other.set_column(1, "hour", self.table["hour"].cast(pyarrow.float64()))
        other = other.set_column(4, "item", self.table["item"].cast(pyarrow.string()))
        for part, begin in enumerate((0, 1000, 2500)):
            end = (1000, 2500, ROWS)[part]
            self.write(f"part-{part}.parquet", other.slice(begin, end - begin), data_page_version="2.0",
                       use_dictionary=part > 0)
        found["parts of other types"] = self.digest(self.job("parts", train=["part-*.parquet"]), "parts")
        harness.figure(f"rows as text {wanted[:12]}, as Parquet {({name: d[:12] for name, d in found.items()})}")
        self.assertEqual(set(found.values()), {wanted})

    def test_one_digest_for_three_workers_resumed_and_with_negatives(self):
        workers = self.digest(self.text, "text3", 3)
        self.assertEqual(self.digest(self.parquet, "parquet3", 3), workers)
        out = self.out("run_resumed")
        stopped = harness.train(self.parquet, out, 1, 3, {"train.max_steps": 15})
        self.assertEqual(stopped["steps"], 15)
        self.assertEqual(harness.train(self.parquet, out, 1, 3)["digest"], workers)
        negatives = {"data.item_features": '["item","tags"]', "data.negatives": '{"per_positive":2}'}
        self.assertEqual(self.digest(self.parquet, "made", 1, negatives), self.digest(self.text, "made_text", 1, negatives))

    def test_scores_and_evaluations_are_those_of_the_text(self):
        harness.train(self.parquet, self.out("run"))
        bare = self.table.drop_columns(["click"])
        self.write("bare.parquet", bare)
        write_csv(self.out("bare.csv"), bare, bare.column_names)
        harness.train(self.text, self.out("run_text"))
        for command in ("predict", "evaluate"):
            said = [harness.run([HDPS, command, f"--checkpoint={self.out(run)}", f"--data={self.out(data)}"]).stdout
                    for run, data in (("run", "bare.parquet" if command == "predict" else "rows.parquet"),
                                      ("run_text", "bare.csv" if command == "predict" else "rows.csv"))]
            wanted = [line.replace("rows.csv", "rows.parquet").replace("run_text", "run") for line in said[1].splitlines()]
            self.assertEqual(said[0].splitlines(), wanted)
            self.assertGreaterEqual(len(wanted), ROWS if command == "predict" else 1)

    def test_the_same_rows_are_held_out_whatever_the_order(self):
        self.write("first.parquet", self.table.slice(0, 1234))
        self.write("second.parquet", self.table.slice(1234))
        rows = set()
        for name, files in (("a", ["first.parquet", "second.parquet"]), ("b", ["second.parquet", "first.parquet"])):
            job = self.job(name, train=files, validation_share=0.2)
            for workers in (1, 2):
                rows.add(harness.train(job, self.out(f"run_{name}{workers}"), 1, workers)["examples"])
        self.assertEqual(len(rows), 1)
        self.assertNotIn(2 * ROWS, rows)

    def test_prepare_reads_the_types(self):
        said = harness.run([HDPS, "prepare", self.out("rows.parquet"), f"--out={self.out('made')}"]).stdout
        job = self.out("made") / "job.json"
        text = job.read_text()
        for part in ('"format": "parquet"', '"name": "tags"', '"type": "multi"'):
            self.assertIn(part, text)
        self.assertIn("a list of values", said)
        self.assertGreater(harness.train(job, self.out("run_made"))["examples"], 0)

    def test_kept_rows_give_the_same_digest(self):
        wanted = self.digest(self.parquet, "parsed")
        self.assertEqual(self.digest(self.job("kept", train=["rows.parquet"], cache="memory"), "kept"), wanted)

    def test_memory_is_bounded_for_one_large_row_group(self):
        """Numbers that no dictionary helps with, in one row group: memory beyond that of a small file."""
        names, peaks, bytes_of = [f"n{column}" for column in range(20)], {}, {}
        for name, rows in (("small", 20_000), ("large", 2_000_000)):
            columns = {column: pyarrow.array(memoryview(random.Random(place).randbytes(4 * rows)).cast("i"), pyarrow.int32())
                       for place, column in enumerate(names)}
            columns["y"] = pyarrow.array([0.0, 1.0] * (rows // 2), pyarrow.float32())
            self.write(f"{name}.parquet", pyarrow.table(columns), row_group_size=rows, use_dictionary=False)
            del columns
            job = harness.write_job(self.out(f"{name}.json"), {
                "data": {"format": "parquet", "train": [f"{name}.parquet"], "shuffle_rows": 1000,
                         "columns": [{"name": "y", "type": "label"}, *({"name": n, "type": "numeric", "scale": 1e9,
                                     "transform": "standardize"} for n in names)]},
                "model": {"type": "mlp", "hidden": [4], "device": "cpu"}, "train": {"batch_size": 10_000, "epochs": 1}})
            _, peaks[name] = harness.with_peak([HDPS, "train", f"--job={job}", f"--out={self.out('run_' + name)}"])
            self.assertEqual(harness.summary_of(self.out("run_" + name))["examples"], rows)
            bytes_of[name] = self.out(f"{name}.parquet").stat().st_size
        more = (peaks["large"] - peaks["small"]) / MEBI
        harness.figure(f"training on a row group of {bytes_of['large'] / MEBI:.0f} MiB takes {peaks['large'] / MEBI:.0f} MiB of "
                       f"memory, {more:.0f} MiB more than on one of {bytes_of['small'] / MEBI:.1f} MiB")
        self.assertGreater(bytes_of["large"], 128 * MEBI)
        self.assertLess(more, 64)
        self.assertLess(peaks["large"], 256 * MEBI)

    def test_mistakes_end_before_training(self):
        whole = self.out("rows.parquet").read_bytes()
        self.out("cut.parquet").write_bytes(whole[:len(whole) // 2])
        self.write("times.parquet", self.table.append_column("at", pyarrow.array([0] * ROWS, pyarrow.timestamp("s"))))
        at = {"columns": [*self.data["columns"], {"name": "at"}]}
        for job, message in (
                (self.job("cut", train=["rows.parquet", "cut.parquet"]), "cut.parquet: this Parquet file is cut off"),
                (self.job("mixed", train=["rows.parquet", "rows.csv"]), "rows.csv: this is no Parquet file"),
                (self.job("as_text", format="csv", train=["rows.parquet"]), "rows.parquet: this is a Parquet file"),
                (self.job("at", train=["times.parquet"], **at), "column 'at' has the type timestamp"),
                (self.job("lacks", train=["rows.parquet"], **at), "the file has no column 'at'")):
            self.assertIn(message, harness.train(job, self.out("none"), expect=2).stderr)
        ignored = harness.run([HDPS, "train", f"--job={self.job('header', train=['rows.parquet'], header=True)}",
                               f"--out={self.out('run_header')}"])
        self.assertIn("data.header is ignored", ignored.stdout + ignored.stderr)

    def test_a_program_without_the_module_says_what_is_missing(self):
        shutil.copy(HDPS, self.out("hdps"))
        done = harness.run([self.out("hdps"), "train", f"--job={self.parquet}", f"--out={self.out('none')}"], expect=2)
        self.assertIn("libhdps_parquet.so", done.stderr)
        self.assertIn("scripts/install_parquet.sh", done.stderr)
        harness.run([self.out("hdps"), "train", f"--job={self.text}", f"--out={self.out('run')}"])


def readable(field):
    """The type of a job's column for a field of a file; None if hdps does not read such fields."""
    kind = field.type
    if pyarrow.types.is_dictionary(kind):
        kind = kind.value_type
    if pyarrow.types.is_floating(kind) or pyarrow.types.is_decimal(kind):
        return "numeric"
    simple = (pyarrow.types.is_integer(kind) or pyarrow.types.is_boolean(kind) or pyarrow.types.is_string(kind) or
              pyarrow.types.is_binary(kind) or pyarrow.types.is_null(kind))
    return "categorical" if simple else None


@NEEDS_MODULE
class FilesOfOthers(harness.Case):
    def test_each_is_read_as_pyarrow_reads_it_or_refused(self):
        """A model that learned a file's rows from text gives the file the scores of the text."""
        read, refused = [], []
        for path in sorted(OTHERS.rglob("*.parquet*")):
            with self.subTest(path=path.name):
                try:
                    schema = pyarrow.parquet.read_schema(path)
                except (OSError, pyarrow.ArrowException):
                    self.refuse(path, "any", path.name)
                    refused.append(path.name)
                    continue
                for field in schema:
                    if not readable(field):
                        self.refuse(path, field.name, f"column '{field.name}' has the type")
                        refused.append(f"{path.name}: {field.name}")
                names = {field.name: readable(field) for field in schema if readable(field)}
                try:
                    table = pyarrow.parquet.read_table(path, columns=list(names), page_checksum_verification=True)
                except (OSError, pyarrow.ArrowException):
                    names, table = self.without_damage(path, names)
                    refused.append(path.name)
                if names and table.num_rows > 0:
                    self.assertEqual(*self.scores(path, table, names))
                    read.append(path.name)
        harness.figure(f"{len(read)} of Apache's files are read as pyarrow reads them; {len(refused)} refusals")
        self.assertGreater(len(read), 15)

    def without_damage(self, path, names):
        """The columns that pyarrow reads; hdps refuses each of the others."""
        whole = {}
        for name, kind in names.items():
            try:
                pyarrow.parquet.read_table(path, columns=[name], page_checksum_verification=True)
                whole[name] = kind
            except (OSError, pyarrow.ArrowException):
                self.refuse(path, name, path.name)
        return whole, pyarrow.parquet.read_table(path, columns=list(whole))

    def refuse(self, path, name, message):
        self.learn({name: "categorical"}, pyarrow.table({"a label": [0, 1], name: ["x", "y"]}))
        self.assertIn(message, self.predict(path, "parquet", expect=2).stderr)

    def scores(self, path, table, names):
        """The scores of the rows of a file, and of the same rows as text, by a model of them."""
        self.learn(names, table.append_column("a label", pyarrow.array([row % 2 for row in range(table.num_rows)])))
        return self.predict(path, "parquet").stdout, self.predict(self.out("rows.csv"), "csv").stdout

    def learn(self, names, table):
        write_csv(self.out("rows.csv"), table, ["a label", *names])
        shutil.rmtree(self.out("run"), ignore_errors=True)
        kinds = set(names.values())
        model = "wide_deep" if len(kinds) > 1 else "mlp" if "numeric" in kinds else "logistic"
        self.job = harness.write_job(self.out("job.json"), {
            "data": {"format": "csv", "header": True, "train": ["rows.csv"], "max_bad_rows": 10000, "columns": [
                {"name": "a label", "type": "label"}, *({"name": name, "type": kind} for name, kind in names.items())]},
            "model": {"type": model, "device": "cpu"}, "train": {"batch_size": 4, "max_steps": 50}})
        harness.train(self.job, self.out("run"))

    def predict(self, path, form, expect=0):
        return harness.run([HDPS, "predict", f"--checkpoint={self.out('run')}", f"--job={self.job}", f"--data={path}",
                            f"--set=data.format={form}", "--bad_rows=nan"], expect=expect)


if __name__ == "__main__":
    harness.main()
