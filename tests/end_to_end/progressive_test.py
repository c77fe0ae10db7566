"""Tests figures of what is trained by scores from before it is learned: computed again by hand, step by step."""
import json
import math
import random

import harness
from failing_cluster import FailingCluster

BATCH, STEPS, WINDOW = 60, 12, 240  # A window is four steps.
TOLERANCE = 2e-6  # hdps predict writes probabilities with this many digits.


def by_hand(scored):
    """AUC, logloss and calibration of (probability, label), by their definitions."""
    ones = [p for p, label in scored if label]
    zeros = [p for p, label in scored if not label]
    pairs = sum((a > b) + 0.5 * (a == b) for a in ones for b in zeros)
    loss = -sum(math.log(p if label else 1 - p) for p, label in scored) / len(scored)
    return {"auc": pairs / (len(ones) * len(zeros)), "logloss": loss,
            "calibration": sum(p for p, _ in scored) / len(ones)}


class Progressive(harness.Case):
    def setUp(self):
        super().setUp()
        draw = random.Random(7)
        self.rows = []
        for _ in range(BATCH * STEPS):
            a, b = draw.randrange(40), draw.randrange(9)
            self.rows.append((int(draw.random() < (0.8 if (a + b) % 3 else 0.2)), f"a{a}", f"b{b}"))
        self.data = self.out("train.csv")
        self.data.write_text("".join(f"{y},{a},{b}\n" for y, a, b in self.rows))

    def job(self, **more):
        job = {"name": "stream",
               "data": {"train": [str(self.data)], "shuffle_rows": 0,
                        "columns": [{"name": "y", "type": "label"}, {"name": "a"}, {"name": "b"}]},
               "model": {"type": "wide_deep", "embedding_dim": 4, "hidden": [8], "device": "cpu"},
               "train": {"batch_size": BATCH, "epochs": 1, "progressive": {"window": WINDOW}},
               "checkpoint": {"every_steps": 1, "keep": STEPS + 1}, "cluster": {"shards": 8}}
        for section, settings in more.items():
            job[section].update(settings)
        return harness.write_job(self.out("job.json"), job)

    def told(self, out):
        lines = map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
        return {line["step"]: line for line in lines if line.get("eval_set") == "progressive"}

    def scores_of_step(self, out, step):
        """Probabilities of the rows of a step, by the checkpoint of the step before it."""
        rows = self.rows[step * BATCH:(step + 1) * BATCH]
        part = self.out("part.csv")
        part.write_text("".join(f"{y},{a},{b}\n" for y, a, b in rows))
        done = harness.run([harness.program("hdps"), "predict", f"--data={part}",
                            f"--checkpoint={out / 'checkpoint' / f'step_{step:010}'}"])
        return list(zip(map(float, done.stdout.split()), (y for y, _, _ in rows), strict=True))

    def test_equals_one_computed_by_hand(self):
        """Each figure is that of the window's rows, scored by the checkpoint from before their step."""
        out = self.out("run")
        harness.train(self.job(), out)
        told = self.told(out)
        self.assertEqual(sorted(told), list(range(1, STEPS + 1)), "at every save")
        scored = {step: self.scores_of_step(out, step) for step in range(1, STEPS)}
        worst = 0
        for step in range(5, STEPS + 1):
            expected = by_hand([pair for of in range(step - 4, step) for pair in scored[of]])
            self.assertEqual(told[step]["eval_examples"], WINDOW)
            for name, value in expected.items():
                worst = max(worst, abs(told[step]["eval_metrics"][name] - value))
                self.assertAlmostEqual(told[step]["eval_metrics"][name], value, delta=TOLERANCE, msg=f"{name} at {step}")
        self.assertEqual(told[2]["eval_examples"], 2 * BATCH, "there are no more yet")
        harness.figure(f"progressive AUC, logloss and calibration of {STEPS - 4} windows: at most {worst:.1e} from those by hand")
        summary = harness.summary_of(out)["progressive"]
        self.assertEqual(summary["metrics"], told[STEPS]["eval_metrics"])
        self.assertEqual(summary["examples"], WINDOW)

    def test_a_worker_that_is_replaced_in_place_begins_its_part_anew(self):
        """Its newest scores are gone with it: the window has fewer examples, says so, and is whole again when it has passed."""
        crash = {"worker_1": ["point=worker.step.computed:crash@4"]}
        for exchange in ("servers", "allreduce"):
            job, sets = self.job(), {"parallel.dense_exchange": exchange}
            out = self.out(f"{exchange}_plain")
            summary = harness.train(job, out, 1, 2, sets)
            plain, out = self.told(out), self.out(exchange)
            with FailingCluster(job, out, 1, 2, sets, crash) as cluster:
                replaced, log = cluster.finish(), cluster.log()
            self.assertIn("nobody goes back", log)
            self.assertNotIn("the job goes on from", log)
            self.assertEqual(replaced["digest"], summary["digest"])
            told = self.told(out)
            examples = {step: line["eval_examples"] for step, line in told.items()}
            self.assertEqual(examples[3], 3 * BATCH)
            self.assertLess(examples[4], WINDOW)
            for step in range(8, STEPS + 1):
                self.assertEqual((examples[step], told[step]["eval_metrics"]), (WINDOW, plain[step]["eval_metrics"]), step)
            harness.figure(f"progressive figures, dense_exchange {exchange}, a worker replaced in place at step 4: examples of the "
                           f"window {', '.join(str(examples[step]) for step in range(3, 9))}; then those of the undisturbed run")

    def test_workers_and_parts_give_the_same_figures(self):
        """Three workers, or micro-batches, give the figures of one worker, but for the rounding of its training."""
        told = []
        for n, (servers, workers, sets) in enumerate(((1, 1, {}), (2, 3, {}), (1, 2, {"train.micro_batches": 3}))):
            out = self.out(f"run_{n}")
            sets = {"checkpoint.every_steps": 0, "parallel.dense_exchange": "servers", **sets}
            done = harness.train(self.job(), out, servers, workers, sets)
            told.append({step: line["eval_metrics"] for step, line in self.told(out).items()})
            self.assertEqual(done["progressive"]["metrics"], told[n][STEPS])
        self.assertEqual(sorted(told[0]), [4, 8, 12], "whenever a window was trained")
        for other in told[1:]:
            self.assertEqual(sorted(other), sorted(told[0]))
            for step, metrics in other.items():
                for name, value in metrics.items():
                    self.assertAlmostEqual(value, told[0][step][name], delta=1e-4, msg=f"{name} at {step}")

    def test_training_stays_as_it_was(self):
        """The digest is that of a job without figures, and so is the rest of its summary."""
        with_figures = harness.train(self.job(), self.out("with"))
        without = harness.train(self.job(train={"progressive": {"window": 0}}), self.out("without"))
        self.assertEqual(with_figures["digest"], without["digest"])
        self.assertNotIn("progressive", without)
        self.assertEqual(self.told(self.out("without")), {})

    def test_mistakes(self):
        for sets, expected in (({"train.progressive": '{"window": -1}'}, "train.progressive.window"),
                               ({"model.loss": "softmax", "model.classes": 2}, "softmax gives no scores"),
                               ({"parallel.parallel_mode": "semi_auto_parallel"}, "use data_parallel"),
                               ({"data.eval_sets": f'[{{"name": "progressive", "files": ["{self.data}"]}}]'},
                                "choose another")):
            done = harness.train(self.job(), self.out("refused"), sets=sets, expect=2)
            self.assertIn(expected, done.stderr)


if __name__ == "__main__":
    harness.main()
