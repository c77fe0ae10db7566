"""Tests hdps evaluate and predict with rows in 8 bits: about a quarter of the bytes, and the AUC stays."""
import re

import harness

HDPS = harness.program("hdps")
AUC_MAX = 0.0005


class Int8Rows(harness.Case):
    def scored(self, run, *flags):
        """Returns the AUC, and the share of the rows' bytes that they take in 8 bits."""
        said = harness.run([HDPS, "evaluate", f"--checkpoint={run}", *flags]).stdout
        share = re.search(r"^weights +int8: \S+ \S+ of rows instead of \S+ \S+, ([0-9.]+) of them$", said, re.M)
        return float(re.search(r"^auc +([0-9.]+)", said, re.M)[1]), float(share[1]) if share else None

    def expected_share(self, run, *flags):
        """A row of d weights takes 2 + d bytes in place of 4 d."""
        said = harness.run([HDPS, "evaluate", f"--checkpoint={run}", "--dry_run", *flags]).stdout
        tables = [(int(rows), int(dim)) for rows, dim in re.findall(r": (\d+) rows of (\d+) weights,", said)]
        return sum(rows * (2 + dim) for rows, dim in tables) / sum(rows * 4 * dim for rows, dim in tables)

    def check(self, name, run, *flags):
        saved, none = self.scored(run, *flags)
        self.assertIsNone(none)
        int8, share = self.scored(run, *flags, "--weights=int8")
        harness.figure(f"{name}: AUC {saved:.6f}, with rows in 8 bits {int8:.6f}, in {share:.3f} of their bytes")
        self.assertLessEqual(abs(int8 - saved), AUC_MAX)
        self.assertAlmostEqual(share, self.expected_share(run, *flags), places=3)
        return share

    def test_census(self):
        harness.train(harness.CENSUS, self.out("run"))
        self.check("census, rows of 1 and 8 weights", self.out("run"), f"--job={harness.CENSUS}")

    def test_generated(self):
        data = harness.generate(self.out("log"), rows=40000, eval_rows=10000, vocabulary=2000, seed=5)
        job = harness.reference_job(data)
        job["model"] = {"type": "deepfm", "embedding_dim": 64, "hidden": [32], "device": "cpu"}
        job = harness.write_job(self.out("job.json"), job)
        harness.train(job, self.out("run"))
        self.assertLess(self.check("generated, rows of 1 and 64 weights", self.out("run")), 0.27)
        self.check("the same by two workers", self.out("run"), "--workers=2")
        saved, int8 = (harness.run([HDPS, "predict", f"--checkpoint={self.out('run')}", *flags])
                       for flags in ((), ("--weights=int8",)))
        self.assertIn("weights are int8", int8.stderr)
        self.assertEqual(len(int8.stdout.split()), len(saved.stdout.split()))
        self.assertNotEqual(int8.stdout, saved.stdout)

    def test_another_word_is_refused(self):
        done = harness.run([HDPS, "predict", "--checkpoint=x", "--weights=int4"], expect=2)
        self.assertIn("expected saved or int8", done.stderr)


if __name__ == "__main__":
    harness.main()
