"""Trains the three nets of MindSpore's documents from examples/mindspore, on images in MNIST's format by 8 workers."""
import math
import re

import harness

FOLDER = harness.ROOT / "examples" / "mindspore"
WORKERS, ROWS_A_WORKER, STEPS = 8, 32, 100
# By how much a job's printed loss is a single copy's: two copies are added up.
SCALES = {"optimizer_parallel": 1, "multi_copy": 2, "host_device": 1}
DENSE_LAYERS = ("1", "2", "3")
LINE = re.compile(r"^epoch: (\d+) step: (\d+), loss is (\d+\.\d+)$", re.M)


class MindSpore(harness.Case):
    def setUp(self):
        super().setUp()
        self.data = self.out("digits")
        harness.run([harness.program("hdps"), "generate", "--kind=digits", "--format=idx", f"--out={self.data}",
                     f"--rows={WORKERS * ROWS_A_WORKER * (STEPS + 1)}", "--eval_rows=500", "--seed=3"])

    def losses(self, name, what, steps, sets=None):
        """The loss of one copy by step, as the printed lines have it."""
        chosen = {"data.train.0": f"{self.data}/train-images-idx3-ubyte",
                  "data.eval.0": f"{self.data}/eval-images-idx3-ubyte",
                  "train.max_steps": steps, "train.log_every_steps": 10, **(sets or {})}
        done = harness.run([harness.program("hdps"), "train", f"--job={FOLDER / name}.json",
                            f"--out={self.out(f'{name}_{what}')}", f"--workers={WORKERS}",
                            *harness.merged_settings(chosen)])
        lines = LINE.findall(done.stdout + done.stderr)
        self.assertEqual([(int(epoch), int(step)) for epoch, step, _ in lines], [(1, s) for s in range(10, steps + 1, 10)])
        return {int(step): float(loss) / SCALES[name] for _, step, loss in lines}

    def test_every_job_is_tested(self):
        self.assertEqual(sorted(SCALES), sorted(path.stem for path in FOLDER.glob("*.json")))

    def test_losses_begin_and_fall_as_in_the_documents(self):
        """Weights of deviation 0.01 make logits near 0, so each class begins with a probability near 1/10."""
        for name in SCALES:
            with self.subTest(name):
                losses = self.losses(name, "as_written", STEPS)
                harness.figure(f"{name}: loss {losses[10]:.4f} at step 10, {losses[50]:.4f} at 50, {losses[100]:.4f} at 100")
                self.assertAlmostEqual(losses[10], math.log(10), delta=0.02)
                self.assertLess(losses[100], losses[10])
                if name == "optimizer_parallel":  # Its gradients are summed: eight times the learning rate.
                    self.assertLess(losses[100], 1.0)

    def test_each_learns_within_a_hundred_steps_from_usual_weights(self):
        for name in SCALES:
            with self.subTest(name):
                init = {f"model.layers.{layer}.init": "he_uniform" for layer in DENSE_LAYERS}
                losses = self.losses(name, "usual", STEPS, init)
                harness.figure(f"{name} from he_uniform: loss {losses[100]:.4f} at step 100")
                self.assertLess(losses[100], 1.0)


if __name__ == "__main__":
    harness.main()
