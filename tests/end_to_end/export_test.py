"""Tests hdps export --format=safetensors and hdps train --init: NumPy alone computes what hdps does, in bounded memory.

NumPy, safetensors and xxhash come from PyPI, into build/; what needs them is skipped by name where PyPI
cannot be reached and the system has no NumPy.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

import harness
from every_layer import LAYERS, every_job

HDPS = harness.program("hdps")
CHECK = harness.ROOT / "python" / "hdps" / "check.py"
VENV = harness.BIN.parent / "export_python"
PACKAGES = ["numpy==1.26.4", "safetensors==0.4.5", "xxhash==3.5.0"]
ITEMS = 100
# Three layers of sums of at most 128 products in float, whose sizes add up to 25: 3 x 128 x 2^-24 x 25.
APART_MAX = 6e-4


def interpreters():
    """A Python with all packages, or None, and one with NumPy alone, or None."""
    python = VENV / "bin" / "python"
    if not (VENV / "done").exists():
        for command in ([sys.executable, "-m", "venv", "--clear", VENV],
                        [python, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check",
                         *PACKAGES]):
            if subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True).returncode:
                break
        else:
            (VENV / "done").touch()
    whole = python if (VENV / "done").exists() else None
    for candidate in (whole, "/usr/bin/python3", sys.executable):
        if candidate and subprocess.run([candidate, "-c", "import numpy"], capture_output=True).returncode == 0:
            return whole, candidate
    return whole, None


WHOLE, NUMPY = interpreters()
needs_packages = unittest.skipUnless(WHOLE, "safetensors and xxhash cannot be installed from PyPI")


def export(run, out, *flags, expect=0):
    return harness.run([HDPS, "export", f"--checkpoint={run}", "--format=safetensors", f"--out={out}", *flags],
                       expect=expect)


def numpy(code, *arguments):
    """What a program prints that has NumPy and hdps.check as `check`."""
    head = f"import sys; sys.path.insert(0, {str(CHECK.parent)!r}); import check, json, numpy, pathlib\n"
    return harness.run([NUMPY, "-c", head + code, *arguments]).stdout


def evaluated(run, *flags):
    return harness.run([HDPS, "evaluate", f"--checkpoint={run}", *flags]).stdout


@unittest.skipUnless(NUMPY, "no Python with NumPy")
class Export(harness.Case):
    def census(self, name="run", **sets):
        harness.train(harness.CENSUS, self.out(name), sets={"train.max_steps": 120, **sets})
        return self.out(name)

    def checked(self, folder, most=APART_MAX):
        """The largest difference that NumPy finds."""
        said = harness.run([NUMPY, CHECK, folder]).stdout
        apart = float(re.fullmatch(r"1000 rows by NumPy: the largest difference is (\S+)\n", said)[1])
        harness.figure(f"{folder.name}: 1000 rows by NumPy at most {apart:.3g} apart")
        self.assertLessEqual(apart, most)
        return apart

    def test_census_by_numpy(self):
        """Scores of rows whose keys all have rows are those that hdps predict prints, unlike those of others."""
        run = self.census()
        said = export(run, self.out("model")).stdout
        self.assertIn("table deep: ", said)
        self.assertRegex(said, r"step 120 as safetensors in .*: 2 files, .* MB/s")
        self.checked(self.out("model"))
        lines = harness.run([HDPS, "predict", f"--checkpoint={run}",
                             f"--data={harness.ROOT}/examples/census/adult.test.gz"]).stdout.split()[:1000]
        same, without = json.loads(numpy("""
model, rows = check.load(pathlib.Path(sys.argv[1])), check.Safetensors(sys.argv[1] + "/check.safetensors")
known = numpy.ones(1000, bool)
for name, rule in json.loads(model.metadata["keys"]).items():
    for table in rule["tables"]:
        known &= numpy.isin(rows[name], model[table + ".keys"])[:, 0]
logits = rows["scores"][:, 0].astype(numpy.float64)
lines = numpy.array([float(line) for line in open(sys.argv[2])])
apart = numpy.abs(1 / (1 + numpy.exp(-logits)) - lines)
print(json.dumps([float(apart[known].max()), int((~known).sum())]))
""", self.out("model"), self.lines(lines)))
        harness.figure(f"{1000 - without} rows with all keys: at most {same:.3g} from hdps predict")
        self.assertLessEqual(same, 1e-7)  # The printed numbers are floats near 1 at most: 2^-24.

    def test_serving_predicts_as_the_run(self):
        """Bit for bit, from the run's folder or the one that is mapped, also once nothing else is there."""
        run, serving = self.census(), self.out("serving")
        rows = f"--data={harness.ROOT}/examples/census/adult.test.gz"
        expected = harness.run([HDPS, "predict", f"--checkpoint={run}", rows]).stdout
        said = export(run, serving, "--format=serving").stdout
        self.assertRegex(said, r"step 120 as serving in .*: \d+ files, .* MB/s")
        files = list(serving.glob("shard_*.flat"))
        self.assertEqual(len(files) + 1, len(list(serving.iterdir())))
        saved = sum(file.stat().st_size for file in run.glob("checkpoint/*/*")) / len(list(run.glob("checkpoint/*")))
        bytes_ = sum(file.stat().st_size for file in files)
        harness.figure(f"serving: {bytes_} bytes, of a checkpoint {saved:.0f}")
        run.rename(self.out("elsewhere"))
        self.assertEqual(harness.run([HDPS, "predict", f"--checkpoint={serving}", rows]).stdout, expected)
        int8 = harness.run([HDPS, "predict", f"--checkpoint={serving}", "--weights=int8", rows], expect=2)
        self.assertIn("exported for serving", int8.stderr)
        damaged = bytearray(files[0].read_bytes())
        damaged[len(damaged) // 2] ^= 1
        files[0].write_bytes(damaged)
        done = harness.run([HDPS, "predict", f"--checkpoint={serving}", rows], expect=None)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(files[0].name, done.stderr)

    def test_every_layer_by_numpy(self):
        job = every_job(self.folder)
        self.assertEqual({layer["kind"] for layer in job["model"]["layers"]}, LAYERS, "this graph has every layer")
        self.assertEqual(set(json.loads(numpy("print(json.dumps(list(check.LAYERS)))"))), LAYERS,
                         "python/hdps/check.py has a function for each layer")
        harness.train(harness.write_job(self.out("every.json"), job), self.out("run"))
        export(self.out("run"), self.out("model"))
        self.checked(self.out("model"), 1e-5)  # As onnxruntime has to be.

    def lines(self, lines):
        self.out("lines").write_text("\n".join(lines))
        return self.out("lines")

    def unknown_keys(self, folder, lines):
        """Keys, and those without a row, of all rows to check with; the largest difference from hdps' lines."""
        return json.loads(numpy("""
model, rows = check.load(pathlib.Path(sys.argv[1])), check.Safetensors(sys.argv[1] + "/check.safetensors")
keys = unknown = 0
for name, rule in json.loads(model.metadata["keys"]).items():
    for table in rule["tables"]:
        keys += rows[name].size
        unknown += int((~numpy.isin(rows[name], model[table + ".keys"])).sum())
logits = rows["scores"][:, 0].astype(numpy.float64)
lines = numpy.array([float(line) for line in open(sys.argv[2])])
print(json.dumps([keys, unknown, float(numpy.abs(1 / (1 + numpy.exp(-logits)) - lines).max())]))
""", folder, self.lines(lines)))

    def test_dcn_v2_in_16_bits_and_several_files(self):
        data = harness.generate(self.out("log"), rows=20000, eval_rows=1000, vocabulary=3000, seed=5)
        job = harness.reference_job(data, max_steps=12)
        job["model"] = {"type": "dcn_v2", "embedding_dim": 8, "cross_layers": 2, "hidden": [32], "device": "cpu"}
        job = harness.write_job(self.out("job.json"), job)
        harness.train(job, self.out("run"), servers=2)
        whole = export(self.out("run"), self.out("model")).stdout
        self.checked(self.out("model"))
        lines = harness.run([HDPS, "predict", f"--checkpoint={self.out('run')}", f"--data={data}/eval.tsv"]).stdout
        keys, unknown, apart = self.unknown_keys(self.out("model"), lines.split())
        told = re.search(r"keys without a row: (\d+) of (\d+) .* by at most (\S+),", whole)
        harness.figure(f"{unknown} of {keys} keys have no row; predictions differ by at most {told[3]}")
        self.assertEqual((int(told[1]), int(told[2])), (unknown, keys))
        self.assertGreater(unknown, 0)
        self.assertAlmostEqual(float(told[3]), apart, delta=0.01 * apart)  # It prints 3 digits.
        said = export(self.out("run"), self.out("cut"), "--shard_bytes=100KB", "--weights=bf16").stdout
        counts = [re.search("keys without.*", text)[0] for text in (whole, said)]
        self.assertEqual(*counts)
        index = json.loads((self.out("cut") / "model.safetensors.index.json").read_text())
        self.assertGreater(len(set(index["weight_map"].values())), 1)
        for file in self.out("cut").glob("model-*"):
            self.assertIn(file.name, index["weight_map"].values())
        numpy("""
one, cut = (check.load(pathlib.Path(folder)) for folder in sys.argv[1:3])
assert one.keys() == cut.keys() and one.metadata == cut.metadata
for name in one:
    if name.endswith(".weights"):
        assert numpy.abs(one[name] - cut[name]).max() <= 2.0**-8 * numpy.abs(one[name]).max()
    else:
        assert (one[name] == cut[name]).all()
    if name.endswith(".keys"):
        keys = one[name].view(numpy.uint64)
        assert (keys[1:] > keys[:-1]).all(), "not ascending"
""", self.out("model"), self.out("cut"))

    @needs_packages
    def test_by_the_package_and_the_page(self):
        """The safetensors package reads the file, and the page's lines find the row that hdps inspect prints."""
        run = self.census()
        export(run, self.out("model"))
        page = (harness.ROOT / "docs" / "export.md").read_text()
        code = re.search(r"```python\n(.*?)```", page, re.S)[1]
        said = harness.run([WHOLE, "-c", code, self.out("model")]).stdout
        row = harness.run([HDPS, "inspect", f"--checkpoint={run}", "--row=deep:education=Bachelors"]).stdout
        weights = re.search(r"^weights +(.*)$", row, re.M)[1].split()
        found = [float(number) for number in said.strip("[]\n").split()]
        self.assertEqual(len(found), len(weights))
        for a, b in zip(found, weights):
            self.assertAlmostEqual(a, float(b), delta=1e-7)  # NumPy prints 8 digits of numbers below 1.

    def test_begin_again(self):
        """A run that begins from an export has its figures; its digest is that of any number of servers."""
        run = self.census()
        export(run, self.out("model"))
        again = [HDPS, "train", f"--job={harness.CENSUS}", f"--init={self.out('model')}"]
        said = harness.run([*again, f"--out={self.out('begun')}", "--init_only"]).stderr
        self.assertRegex(said, r"(?m)^deep +dim 8 +F32 \[\d+, 8\] +taken$")
        self.assertRegex(said, r"(?m)^deep1.weight +.*taken$")
        before, after = (re.search(r"auc +(\S+)", evaluated(out))[1] for out in (run, self.out("begun")))
        harness.figure(f"AUC of a run {before}, of one that begins from its export {after}")
        self.assertAlmostEqual(float(before), float(after), delta=1e-6)
        digests = set()
        for servers in (1, 2, 3):
            digests.add(harness.train(harness.CENSUS, self.out(f"s{servers}"), servers, sets={"train.max_steps": 20},
                                      extra=(f"--init={self.out('model')}",))["digest"])
        daemons = harness.cluster(harness.CENSUS, self.out("daemons"), 2, sets={"train.max_steps": 20},
                                  extra=(f"--init={self.out('model')}",))
        self.assertEqual(digests, {daemons["digest"]})
        plain = harness.train(harness.CENSUS, self.out("plain"), sets={"train.max_steps": 20})
        self.assertNotIn(plain["digest"], digests)
        ignored = harness.run([*again, f"--out={self.out('s1')}", "--set=train.max_steps=20"]).stderr
        self.assertIn("is ignored: the run in", ignored)

    def test_tables_trained_elsewhere(self):
        """Rows by value: their keys are those of the feature, and other features begin anew."""
        self.out("words").mkdir()
        numpy("""
sys.path.insert(0, sys.argv[2])
from export_test import write_safetensors
texts = numpy.frombuffer(b"Bachelors\\nHS-grad\\n", numpy.uint8)
write_safetensors(sys.argv[1], {"deep.education.values": ("U8", texts),
                                "deep.education.weights": ("F32", numpy.arange(16, dtype="f4").reshape(2, 8)),
                                "other": ("F32", numpy.zeros(3, "f4"))})
""", self.out("words") / "any.safetensors", pathlib.Path(__file__).parent)
        said = harness.run([HDPS, "train", f"--job={harness.CENSUS}", f"--init={self.out('words')}", "--init_only",
                            f"--out={self.out('run')}"]).stderr
        self.assertRegex(said, r"(?m)^deep.education +dim 8 +F32 \[2, 8\] +taken$")
        self.assertRegex(said, r"(?m)^wide +dim 1 +- +not there: begins anew$")
        self.assertIn("other: nothing of the job has this name", said)
        row = harness.run([HDPS, "inspect", f"--checkpoint={self.out('run')}", "--row=deep:education=HS-grad"]).stdout
        self.assertRegex(row, r"(?m)^weights +8 9 10 11 12 13 14 15$")

    def big(self, rows, dim=32):
        """A checkpoint of step 0 with a table of so many rows and those of ITEMS items, made by --init; its job.

        Returns the peak of its memory and the bytes of the rows.
        """
        job = harness.write_job(self.out("job.json"), {
            "name": "big", "data": {"train": [str(self.out("t.csv"))], "eval": [str(self.out("t.csv"))],
                                    "columns": [{"name": "y", "type": "label"}, {"name": "user"}, {"name": "item"}]},
            "model": {"type": "two_tower", "embedding_dim": dim, "hidden": [8], "device": "cpu",
                      "user_features": ["user"], "item_features": ["item"],
                      "deep_optimizer": {"kind": "sgd", "learning_rate": 0.1}},
            "cluster": {"shards": 64}})
        self.out("t.csv").write_text("".join(f"{i % 2},u{i},i{i}\n" for i in range(ITEMS)))
        self.out("items.csv").write_text("".join(f"i{i}\n" for i in range(ITEMS)))
        for folder in ("big", "items"):
            self.out(folder).mkdir()
        numpy("""
sys.path.insert(0, sys.argv[3])
from export_test import write_big, write_items
write_big(sys.argv[1] + "/big.safetensors", int(sys.argv[4]), int(sys.argv[5]))
for folder in sys.argv[1:3]:
    write_items(folder + "/items.safetensors", int(sys.argv[5]))
""", self.out("big"), self.out("items"), pathlib.Path(__file__).parent, rows, dim)
        command = [HDPS, "train", f"--job={job}", "--init_only"]
        harness.run([*command, f"--init={self.out('items')}", f"--out={self.out('small_run')}"])
        _, peak = harness.with_peak([*command, f"--init={self.out('big')}", f"--out={self.out('run')}"])
        return peak, rows * (8 + 4 * dim)

    def vectors(self, run, out):
        return [HDPS, "export", f"--checkpoint={run}", "--format=vectors", f"--items={self.out('items.csv')}",
                f"--out={out}"]

    def test_memory(self):
        """--init and an export need at most 256 MiB beside one shard; the rows stay what they were."""
        mega = 1 << 20
        rows = harness.share(2_400_000, 31_600_000, "memory of a model of 4 GiB; of 311 MiB here")
        peaks = {}
        peaks["--init"], size = self.big(rows)
        run = self.out("run")
        said, peaks["safetensors"] = harness.with_peak([HDPS, "export", f"--checkpoint={run}", "--format=safetensors",
                                                        f"--out={self.out('model')}"])
        _, peaks["vectors"] = harness.with_peak(self.vectors(run, self.out("vectors")))
        harness.figure(f"{size / mega:.0f} MiB: " + ", ".join(f"{name} in {peak / mega:.0f} MiB" for name, peak
                                                              in peaks.items()) + f"; {said.splitlines()[-1]}")
        # In memory a row takes its floats in lines of 64 bytes and at most 64 bytes of index.
        bound = 256 * mega + 2 * size / 64
        self.assertLess(bound, size, "the bound means nothing for a model this small")
        for name, peak in peaks.items():
            self.assertLessEqual(peak, bound, name)
        numpy("""
one, model = check.Safetensors(sys.argv[1]), check.load(pathlib.Path(sys.argv[2]))
keys, known = one["deep.keys"].view(numpy.uint64), model["deep.keys"].view(numpy.uint64)
assert len(known) == len(keys) + int(sys.argv[3])
for first in range(0, len(keys), 1 << 20):
    some = slice(first, first + (1 << 20))
    at = numpy.searchsorted(known, keys[some])
    assert (known[at] == keys[some]).all() and (model["deep.weights"][at] == one["deep.weights"][some]).all()
""", self.out("big") / "big.safetensors", self.out("model"), ITEMS)
        harness.run(self.vectors(self.out("small_run"), self.out("same_vectors")))
        files = [(self.out(folder) / "items.safetensors").read_bytes() for folder in ("vectors", "same_vectors")]
        self.assertEqual(*files)  # Of a model that has the rows of the items alone.
        self.killed(run)

    def test_memory_of_onnx(self):
        """With its tables inside a model needs three times their bytes; --max_rows bounds these."""
        harness.skip_without_onnx()
        mega, dim = 1 << 20, 32
        rows = harness.share(200_000, 1_000_000, "memory of an ONNX model of 1,000,000 rows; of 200,000 here")
        self.big(rows - ITEMS, dim)
        said, peak = harness.with_peak([HDPS, "export", f"--checkpoint={self.out('run')}", "--format=onnx",
                                        f"--out={self.out('model')}"])
        harness.figure(f"{rows} rows of {dim} floats as onnx in {peak / mega:.0f} MiB: {said.splitlines()[-1]}")
        self.assertLessEqual(peak, 100 * mega + 3 * rows * (14 + 4 * dim))

    def killed(self, run):
        """A kill in the middle leaves no --out; the next export takes the place of what is left."""
        process = subprocess.Popen([HDPS, "export", f"--checkpoint={run}", "--format=safetensors",
                                    f"--out={self.out('half')}"], stdout=subprocess.DEVNULL)
        beside = self.out("half.tmp")
        harness.wait_until(lambda: list(beside.glob("rows/*.keys")), 300, "the folder beside")
        process.kill()
        process.wait()
        self.assertTrue(beside.exists())
        self.assertFalse(self.out("half").exists())
        export(run, self.out("half"))
        self.assertFalse(beside.exists())
        self.assertEqual(sorted(os.listdir(self.out("half"))), sorted(os.listdir(self.out("model"))))

    def test_mistakes(self):
        run = self.census()
        for flags, *needles in (
                (["--format=safetensor", f"--out={self.out('m')}"], "--format=safetensor", "did you mean", "onnx"),
                (["--format=", f"--out={self.out('m')}"], "--format is missing", "safetensors"),
                ([], "--out is missing"),
                ([f"--out={self.folder}"], str(self.folder), "exists"),
                ([f"--out={self.out('m')}", "--weights=int8"], "--weights=int8", "f16"),
                ([f"--out={self.out('m')}", "--shard_bytes=many"], "--shard_bytes=many", "512MiB"),
                ([f"--out={self.out('m')}", "--format=serving", "--set=seed=1"], "leave --job and --set out"),
                ([f"--out={self.out('m')}", "--format=serving", "--weights=f16"], "stay as they were saved"),
                ([f"--out={self.out('m')}", "--data=nowhere.csv"], "nowhere.csv"),
                ([f"--out={self.out('m')}", "--checkpoint=nowhere"], "nowhere")):
            with self.subTest(flags):
                command = [HDPS, "export", f"--checkpoint={run}", "--format=safetensors", *flags]
                done = harness.run(command, expect=None)
                self.assertIn(done.returncode, (2, 3), done.stderr)
                for needle in needles:
                    self.assertIn(needle, done.stderr)
                self.assertEqual(list(self.folder.glob("m*")), [])
        # Flipped in the middle of a shard.
        pack = max(run.glob("checkpoint/*/*"), key=lambda file: file.stat().st_size)
        data = bytearray(pack.read_bytes())
        data[len(data) // 2] ^= 1
        pack.write_bytes(data)
        self.assertIn(pack.name, export(run, self.out("m"), expect=None).stderr)
        self.assertEqual(list(self.folder.glob("m*")), [])


def write_safetensors(path, tensors):
    """The form written once more, by its description alone."""
    header, end = {}, 0
    for name, (dtype, values) in tensors.items():
        header[name] = {"dtype": dtype, "shape": values.shape, "data_offsets": [end, end + values.nbytes]}
        end += values.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, values in tensors.values():
            values.tofile(file)


def write_items(path, dim):
    """A row for each text of items.csv."""
    import numpy as np

    texts = np.frombuffer("".join(f"i{i}\n" for i in range(ITEMS)).encode(), np.uint8)
    weights = np.arange(ITEMS * dim, dtype=np.float32).reshape(ITEMS, dim) % 7 - 3
    write_safetensors(path, {"deep.item.values": ("U8", texts), "deep.item.weights": ("F32", weights)})


def write_big(path, rows, dim):
    """A table under ascending keys that are spread over all 64 bits."""
    import numpy as np

    step = (1 << 64) // rows
    keys = np.arange(rows, dtype=np.uint64) * np.uint64(step) + np.uint64(12345)
    weights = np.resize(np.arange(1000, dtype=np.float32), (rows, dim))
    write_safetensors(path, {"deep.keys": ("I64", keys), "deep.weights": ("F32", weights)})


if __name__ == "__main__":
    harness.main()
