"""Tests decisions by evaluations: early stopping, the checkpoint to keep, and rows held out for them."""
import gzip
import json

import harness

HDPS = harness.program("hdps")


def lines_of(out):
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


class EarlyStop(harness.Case):
    def auc_of(self, out, *flags):
        shown = harness.run([HDPS, "evaluate", f"--checkpoint={out}", *flags]).stdout
        return [line.split()[1] for line in shown.splitlines() if line.startswith("auc")][0]

    def test_the_best_epoch_is_what_is_reported_and_used(self):
        """Census with ten epochs: it ends early, and evaluate gives the best AUC to the digit."""
        sets = {"train.epochs": 10, "train.early_stop.patience": 2}
        out = self.out("early")
        s = harness.train(harness.CENSUS, out, 1, 1, sets)
        evaluations = {line["step"]: line["eval_auc"] for line in lines_of(out) if "eval_auc" in line}
        harness.figure(f"census, 10 epochs, patience 2: ended at step {s['steps']}, best step "
                       f"{s['best_step']} with AUC {s['best_auc']:.6f}; epochs: "
                       f"{[round(auc, 4) for auc in evaluations.values()]}")
        self.assertEqual(s["best_auc"], max(evaluations.values()))
        self.assertEqual(evaluations[s["best_step"]], s["best_auc"])
        self.assertEqual(list(evaluations).index(s["best_step"]) + 2, len(evaluations) - 1)
        self.assertIn(f"that of step {s['best_step']}, in 2 evaluations", s["stopped_early"])
        self.assertEqual(self.auc_of(out), f"{s['best_auc']:.6f}")
        self.assertEqual(self.auc_of(s["best_checkpoint"]), f"{s['best_auc']:.6f}")
        self.assertEqual(self.auc_of(out, "--which=newest"), f"{s['eval_auc']:.6f}")
        # Two workers and servers, stopped on the way, and once more: the same end.
        two = harness.train(harness.CENSUS, self.out("two"), 2, 2, sets)
        cut = harness.train(harness.CENSUS, self.out("cut"), 2, 2, {**sets, "train.max_steps": 300})
        self.assertEqual(cut["steps"], 300)
        cut = harness.train(harness.CENSUS, self.out("cut"), 1, 2, sets)
        for key in ("steps", "digest", "stopped_early", "best_step", "best_auc"):
            self.assertEqual(cut[key], two[key], key)
        # There is nothing left; with more patience there is.
        again = harness.run([HDPS, "train", f"--job={harness.CENSUS}", f"--out={out}",
                             *harness.merged_settings(sets)])
        self.assertIn("already finished", again.stderr)
        more = harness.train(harness.CENSUS, out, 1, 1, {**sets, "train.early_stop.patience": 3})
        self.assertGreater(more["steps"], s["steps"])

    def test_rows_that_are_held_out(self):
        """validation_share: the same rows for any number of workers, evaluated at parts of an epoch."""
        sets = {"data.eval": [], "data.validation_share": 0.2, "train.epochs": 1,
                "train.evals_per_epoch": 4}
        one = harness.train(harness.CENSUS, self.out("one"), 1, 1, sets)
        three = harness.train(harness.CENSUS, self.out("three"), 1, 3, sets)
        steps = {}
        for name, s in (("one", one), ("three", three)):
            told = [line for line in lines_of(self.out(name)) if "eval_auc" in line]
            steps[name] = [(line["step"], line["eval_examples"]) for line in told]
            self.assertEqual(len(told), 4)
            self.assertEqual(s["examples"] + told[0]["eval_examples"], 32561)
        self.assertEqual(steps["one"], steps["three"])
        harness.figure(f"held out rows of census: {steps['one'][0][1]} of 32,561; AUC {one['eval_auc']:.4f}")
        self.assertEqual(self.auc_of(self.out("one"), "--which=newest"), f"{one['eval_auc']:.6f}")
        # Packed or not, they are the same ones.
        plain = self.out("adult.data")
        with gzip.open(harness.CENSUS.parent / "adult.data.gz") as packed:
            plain.write_bytes(packed.read())
        unpacked = harness.train(harness.CENSUS, self.out("plain"), 1, 1,
                                 {**sets, "data.train.0": str(plain)})
        self.assertEqual(unpacked["digest"], one["digest"])

    def test_sets_by_name(self):
        """A second set is evaluated beside the first, told by name, and may be the one that is watched."""
        test = harness.CENSUS.parent / "adult.test.gz"
        with gzip.open(test, "rt") as rows:
            kept = [row for row in rows if "," in row]
        part = self.out("part.csv")
        part.write_text("".join(kept[:5000]))
        sets = {"train.epochs": 3, "data.eval_sets": [{"name": "part", "files": [str(part)]}],
                "train.early_stop.set": "part", "train.early_stop.patience": 1}
        done = harness.run([HDPS, "train", f"--job={harness.CENSUS}", f"--out={self.out('sets')}",
                            *harness.settings(sets)])
        s = harness.summary_of(self.out("sets"))
        self.assertEqual(list(s["eval_sets"]), ["eval", "part"])
        self.assertEqual(s["eval_sets"]["eval"]["auc"], s["eval_auc"])
        self.assertEqual(s["eval_sets"]["part"]["examples"], 5000)
        self.assertIn(", part: AUC ", done.stderr)
        told = [line for line in lines_of(self.out("sets")) if line.get("eval_set") == "part"]
        self.assertEqual(told[-1]["eval_auc"], s["eval_sets"]["part"]["auc"])
        self.assertEqual(self.auc_of(self.out("sets"), "--which=newest", "--eval_set=part"),
                         f"{s['eval_sets']['part']['auc']:.6f}")
        wrong = harness.run([HDPS, "evaluate", f"--checkpoint={self.out('sets')}", "--eval_set=prat"],
                            expect=2)
        self.assertIn('did you mean "part"?', wrong.stderr)
        wrong = harness.run([HDPS, "evaluate", f"--checkpoint={self.out('sets')}", "--which=bets"],
                            expect=2)
        self.assertIn('did you mean "best"?', wrong.stderr)


if __name__ == "__main__":
    harness.main()
