"""Tests jobs with bf16 products: one answer for any number of servers, threads and workers and over each
transport, models as good as in fp32, and a message if the CPU lacks them. Tests that values in 16 bits on their
way make models as good.

The rounding is the same on every machine: without bf16 products on this one, HDPS_WIDENED_BF16=1 makes it
multiply the rounded numbers in fp32."""
import os

import harness

WIDENED = {"HDPS_WIDENED_BF16": "1"}
BF16 = {"model.precision": "bf16"}


class Precision(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        import tempfile, pathlib
        cls.data = pathlib.Path(tempfile.mkdtemp(prefix="hdps_data_"))
        harness.generate(cls.data, rows=12800, eval_rows=2048, vocabulary=5000, zipf=1.05, seed=1)
        cls.job = harness.write_job(cls.data / "job.json",
                                    harness.reference_job(cls.data, batch_size=512))
        harness.train(cls.job, cls.data / "asked", sets=BF16)
        said = harness.run([harness.program("hdps"), "inspect",
                            f"--checkpoint={cls.data / 'asked' / 'checkpoint'}"]).stdout
        cls.native = "bf16 by" in said

    @classmethod
    def tearDownClass(cls):
        import shutil
        shutil.rmtree(cls.data, ignore_errors=True)

    def setUp(self):
        super().setUp()
        self.environment = dict(os.environ)
        if not self.native:
            os.environ.update(WIDENED)
        self.addCleanup(self.restore)

    def restore(self):
        os.environ.clear()
        os.environ.update(self.environment)

    def digest(self, name, servers=1, workers=1, extra=(), **sets):
        values = {**BF16, **{k.replace("__", "."): v for k, v in sets.items()}}
        return harness.train(self.job, self.out(name), servers, workers, values, extra=extra)["digest"]

    def test_one_answer(self):
        """25 steps: servers, workers as parts, threads; and rounding does change the answer."""
        wide = harness.train(self.job, self.out("fp32"))["digest"]
        one = self.digest("one")
        self.assertNotEqual(one, wide, "nothing was rounded")
        self.assertEqual(self.digest("again"), one)
        self.assertEqual({self.digest(f"s{n}", servers=n) for n in (2, 3)}, {one})
        self.assertEqual({self.digest(f"t{n}", extra=[f"--threads={n}"]) for n in (1, 3)}, {one})
        parts = self.digest("parts", train__micro_batches=2)
        workers = {self.digest(f"w{n}", servers=n, workers=2) for n in (1, 2)}
        self.assertEqual(workers, {parts})
        harness.figure(f"bf16 {'by this CPU' if self.native else 'widened'}: servers 1, 2, 3 and threads "
                       f"1, 3 -> {one[:12]}; 2 workers on 1 and 2 servers, 2 parts -> {parts[:12]}; "
                       f"fp32 -> {wide[:12]}")

    def test_daemons_over_each_transport(self):
        """Processes over ipc and tcp give the answer of one process."""
        one = self.digest("one")
        for transport in ("ipc", "tcp"):
            found = harness.cluster(self.job, self.out(transport), servers=2, sets=BF16,
                                    extra=[f"--transport={transport}"])["digest"]
            self.assertEqual(found, one, transport)
        harness.figure(f"daemons by each transport -> {one[:12]}")

    def test_a_cpu_without_it_says_so(self):
        """Vectors limited to AVX2 have no bf16: fp32's own bits, and one line that says why."""
        self.restore()
        os.environ["HDPS_MAX_VECTOR_WIDTH"] = "avx2"
        wide = harness.train(self.job, self.out("fp32"))["digest"]
        done = harness.run([harness.program("hdps"), "train", f"--job={self.job}",
                            f"--out={self.out('none')}", *harness.merged_settings(BF16)])
        said = done.stdout + done.stderr + "".join(
            p.read_text(errors="replace") for p in self.out("none").rglob("*.log"))
        self.assertEqual(harness.summary_of(self.out("none"))["digest"], wide)
        lines = [line for line in said.splitlines() if "neither AMX nor AVX512-BF16" in line]
        self.assertEqual(len(lines), 1, said[-2000:])
        self.assertIn("multiply in fp32", lines[0])

    def test_a_mistake_is_named(self):
        done = harness.train(self.job, self.out("x"), sets={"model.precision": "fp16"}, expect=2)
        self.assertRegex(done.stderr, r"model\.precision.*fp16.*fp32.*tf32.*bf16")

    def test_census_is_learned_as_well(self):
        found = {}
        for precision in ("fp32", "bf16"):
            summary = harness.train(harness.CENSUS, self.out(precision),
                                    sets={"model.precision": precision})
            found[precision] = (summary["eval_auc"], summary["eval_logloss"])
        harness.figure("census: " + ", ".join(
            f"{k} AUC {auc:.5f} logloss {loss:.5f}" for k, (auc, loss) in found.items()))
        self.assertNotEqual(found["fp32"], found["bf16"])
        self.assertLess(abs(found["fp32"][0] - found["bf16"][0]), 0.001)

    def test_a_planted_log_is_learned_as_well(self):
        """A fifth of the rows of planted_models_test: what is compared is fp32 with bf16."""
        rule = {"kind": "lazy_adam", "learning_rate": 0.006, "epsilon": 1e-8}
        data = self.out("data")
        harness.run([harness.program("hdps"), "generate", f"--out={data}", "--model=wide_deep",
                     "--rows=120000", "--eval_rows=60000", "--numeric=4", "--categorical=6",
                     "--vocabulary=40", "--zipf=1.05", "--seed=23"])
        job = harness.reference_job(data, epochs=2, batch_size=512)
        job["model"] = {"type": "wide_deep", "embedding_dim": 8, "hidden": [64, 32],
                        "wide_optimizer": rule, "deep_optimizer": rule, "dense_optimizer": rule}
        file = harness.write_job(self.out("job.json"), job)
        found = {precision: harness.train(file, self.out(precision),
                                          sets={"model.precision": precision})["eval_auc"]
                 for precision in ("fp32", "bf16")}
        harness.figure(f"planted wide_deep: AUC fp32 {found['fp32']:.5f}, bf16 {found['bf16']:.5f}")
        self.assertNotEqual(found["fp32"], found["bf16"])
        self.assertLess(abs(found["fp32"] - found["bf16"]), 0.001)


class Wire(harness.Case):
    """Values in 16 bits between workers and servers."""

    def test_the_auc_of_fp32(self):
        """REF-S with fp16, with and without a loss scale, and with bf16: the AUC of fp32 within 0.001."""
        steps = harness.share(100, 2000, "1900 of 2000 steps of REF-S in 16 bits")
        data = self.out("data")
        data.mkdir()
        harness.generate(data, rows=1024 * steps, eval_rows=20480, vocabulary=20000, zipf=1.05, seed=1)
        job = harness.write_job(self.out("job.json"), harness.reference_job(data))
        auc = {}
        for name, sets in {"fp32": {}, "bf16": {"parallel.wire": "bf16"}, "fp16": {"parallel.wire": "fp16"},
                           "fp16_1024": {"parallel.wire": "fp16", "train.loss_scale": 1024},
                           "fp16_dynamic": {"parallel.wire": "fp16", "train.loss_scale": "dynamic"}}.items():
            summary = harness.train(job, self.out(name), 1, 2, sets)
            self.assertEqual(summary["steps"], steps)
            auc[name] = summary["eval_auc"]
        harness.figure(f"REF-S, {steps} steps: AUC " + ", ".join(f"{n} {a:.5f}" for n, a in auc.items()))
        for name, value in auc.items():
            self.assertAlmostEqual(value, auc["fp32"], delta=0.001, msg=name)


if __name__ == "__main__":
    harness.main()
