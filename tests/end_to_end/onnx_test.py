"""Tests hdps export --format=onnx: onnxruntime computes what hdps does, with tables inside and outside.

onnxruntime comes from PyPI, into build/; what needs it is skipped by name where PyPI cannot be reached.
"""
import json
import pathlib
import random
import re
import subprocess
import unittest

import harness
from every_layer import LAYERS, every_job

HDPS = harness.program("hdps")
RECIPES = harness.ROOT / "examples" / "recipes"
PACKAGES = ["onnxruntime==1.31.1", "numpy"]
OPENCV = ["opencv-python-headless==4.6.0.66", "numpy==1.26.4"]
IN_OPENCV = ["autoint", "dcn_v2", "esmm", "logistic", "mlp", "mmoe", "ple", "wide_deep"]  # That it has the operators for.
STEPS = 15  # Most keys of the evaluation data have a row then, and some have none.
APART_MAX = 1e-5


def export(run, out, *flags, expect=0):
    return harness.run([HDPS, "export", f"--checkpoint={run}", f"--out={out}", *flags], expect=expect)


def python_with_opencv():
    """Debian's interpreter with python3-opencv, else one of PyPI's packages; None without both."""
    debian = "/usr/bin/python3"
    if pathlib.Path(debian).exists():
        if subprocess.run([debian, "-c", "import cv2, numpy"], capture_output=True).returncode == 0:
            return debian
    return harness.python_with("opencv", OPENCV)


class Onnx(harness.Case):
    @classmethod
    def setUpClass(cls):
        harness.skip_without_onnx()

    def exported(self, name, job, sets=None, *companions):
        """A folder of exports as onnx_session.py reads it."""
        run, folder = self.out(f"{name}.run"), self.out(name)
        folder.mkdir()
        harness.train(job, run, sets=sets)
        onnx = [f"--job={job}", "--format=onnx"]
        said = export(run, folder / "inside", *onnx).stdout
        self.assertRegex(said, r"model\.onnx: \d+ nodes, .*tables inside; checked by ONNX's checker")
        for companion, *flags in companions:
            export(run, folder / companion, *onnx, *flags)
        export(run, folder / "outside", *onnx, "--tables=outside")
        export(run, folder / "tables", f"--job={job}", "--format=safetensors")
        return folder

    def compared(self, *folders):
        """What onnx_session.py finds for each, with what all have to keep."""
        python = harness.python_with("onnxruntime", PACKAGES)
        if python is None:
            self.skipTest(f"{' '.join(PACKAGES)} cannot be installed: PyPI is not reached")
        session = pathlib.Path(__file__).with_name("onnx_session.py")
        lines = harness.run([python, session, *folders]).stdout.splitlines()
        all_found = {found["name"]: found for found in map(json.loads, lines)}
        self.assertEqual(len(all_found), len(folders))
        for name, found in all_found.items():
            with self.subTest(name):
                self.assertEqual(found["rows"], 1000)
                for where in ("inside", "outside", "numpy"):
                    self.assertLessEqual(found[where], APART_MAX, where)
                self.assertLessEqual(found["random_apart"], APART_MAX, "all unknown keys are alike")
                self.assertLessEqual(found["alone"], APART_MAX, "a row does not depend on those beside it")
                self.assertEqual(found["metadata"], ["digest", "format", "job", "keys", "numeric", "step", "version"])
        return all_found

    def test_each_recipe(self):
        folders = [self.exported(job.stem, job, {"train.max_steps": STEPS}) for job in sorted(RECIPES.glob("*.json"))]
        all_found = self.compared(*folders)
        for where, how in (("inside", "onnxruntime, tables inside"), ("outside", "onnxruntime, tables outside"),
                           ("numpy", "NumPy alone")):
            most = max(all_found.values(), key=lambda found: found[where])
            harness.figure(f"{len(folders)} recipes in {how}: at most {most[where]:.1e} apart "
                           f"from hdps ({most['name']})")
        ids = [found["random_ids"] for name, found in all_found.items() if name != "mlp"]
        self.assertGreaterEqual(min(ids), 100_000)
        self.assertEqual(all_found["deepfm"]["outputs"], {"probability": [1000, 1], "logit": [1000, 1]})
        self.assertLessEqual(all_found["deepfm"]["probability"], 1e-6)
        labels = [task["label"] for task in json.loads((RECIPES / "mmoe.json").read_text())["model"]["tasks"]]
        self.assertEqual(set(all_found["mmoe"]["outputs"]), {*(f"{label}.probability" for label in labels), "logit"})
        self.assertEqual(all_found["din"]["inputs"], ["history", "history.weight", "target"])

    def test_dense_part_by_opencv(self):
        python = python_with_opencv()
        if python is None:
            self.skipTest(f"no Python has cv2 (python3-opencv), and {' '.join(OPENCV)} cannot be installed from PyPI")
        names = harness.share(IN_OPENCV, sorted(job.stem for job in RECIPES.glob("*.json")), "recipes that it refuses")
        folders = []
        for name in names:
            run, folder = self.out(f"{name}.run"), self.out(name)
            job = RECIPES / f"{name}.json"
            folder.mkdir()
            harness.train(job, run, sets={"train.max_steps": STEPS})
            export(run, folder / "outside", f"--job={job}", "--format=onnx", "--tables=outside")
            export(run, folder / "tables", f"--job={job}", "--format=safetensors")
            folders.append(folder)
        session = pathlib.Path(__file__).with_name("opencv_session.py")
        all_found = list(map(json.loads, harness.run([python, session, *folders]).stdout.splitlines()))
        self.assertEqual(len(all_found), len(folders))
        for found in all_found:
            with self.subTest(found["name"]):
                if found["name"] in IN_OPENCV:
                    self.assertNotIn("refused", found)
                if "apart" in found:
                    self.assertEqual(found["rows"], 1000)
                    self.assertLessEqual(found["apart"], APART_MAX)
        most = max((found for found in all_found if "apart" in found), key=lambda found: found["apart"])
        refused = ", ".join(f"{found['name']} ({found['refused']})" for found in all_found if "refused" in found)
        harness.figure(f"dense parts of recipes in OpenCV {most['opencv']}: at most {most['apart']:.1e} apart from hdps "
                       f"({most['name']}){'; refused: ' * bool(refused)}{refused}")

    def test_every_layer(self):
        job = every_job(self.folder)
        self.assertEqual({layer["kind"] for layer in job["model"]["layers"]}, LAYERS, "this graph has every layer")
        folder = self.exported("every", harness.write_job(self.out("every.json"), job), None,
                               ("inside_large", "--shard_bytes=4096"))
        self.assertTrue((folder / "inside_large" / "model.onnx.data").exists())
        self.assertFalse((folder / "inside" / "model.onnx.data").exists())
        found = self.compared(folder)["every"]
        self.assertEqual(found["inside_large"], 0, "the same weights from a file of their own")
        harness.figure(f"a graph with all {len(LAYERS)} layers in onnxruntime: {found['inside']:.1e} apart with tables "
                       f"inside, {found['outside']:.1e} outside")

    def test_losses(self):
        """Outputs by the loss, and libsvm's values with weights."""
        data = self.out("data")
        data.mkdir()
        draw = random.Random(5)
        for name, rows in (("train", 600), ("eval", 1000)):
            (data / f"{name}.libsvm").write_text("".join(
                f"{draw.randrange(3)} " + " ".join(f"{i}:{draw.choice((1, 0.5, -2))}"
                                                   for i in sorted(draw.sample(range(40), draw.randrange(1, 6)))) + "\n"
                for _ in range(rows)))
        folders, wanted = [], {"softmax": {"probabilities": 3, "logit": 3}, "squared_error": {"score": 1, "logit": 1}}
        for loss, outputs in wanted.items():
            job = {"name": loss, "seed": 1, "data": {"format": "libsvm", "train": [str(data / "train.libsvm")],
                                                     "eval": [str(data / "eval.libsvm")]},
                   "model": {"type": "graph", "loss": loss, "device": "cpu", "tables": [{"name": "t", "dim": 4}],
                             "layers": [{"name": "e", "kind": "embedding", "table": "t", "pooling": "mean"},
                                        {"name": "logits", "inputs": ["e"], "units": outputs["logit"]}]},
                   "train": {"batch_size": 100}}
            folders.append(self.exported(loss, harness.write_job(self.out(f"{loss}.json"), job)))
        for loss, found in self.compared(*folders).items():
            self.assertEqual(found["outputs"], {name: [1000, columns] for name, columns in wanted[loss].items()})
            self.assertEqual(found["inputs"], ["features", "features.weight"])

    def test_mistakes(self):
        run = self.out("run")
        harness.train(RECIPES / "fm.json", run, sets={"train.max_steps": 2})
        flags = [f"--job={RECIPES / 'fm.json'}", "--format=onnx"]
        said = export(run, self.out("few"), *flags, "--max_rows=10", expect=2).stderr
        rows = re.search(r"--max_rows=10: the tables have (\d+) rows together; expected --max_rows=\1 at least, or "
                         r"--tables=outside", said)
        self.assertTrue(rows, said)
        self.assertFalse(self.out("few").exists())
        export(run, self.out("few"), *flags, f"--max_rows={rows[1]}")
        said = export(run, self.out("bad"), *flags, "--tables=inner", expect=2).stderr
        self.assertIn("--tables=inner: expected inside or outside", said)
        said = export(run, self.out("bad"), *flags, "--weights=f16", expect=2).stderr
        self.assertIn("expected f32 with --format=onnx", said)
        self.assertFalse(self.out("bad").exists())


if __name__ == "__main__":
    harness.main()
