"""Trains 784-512-512-10 on images in MNIST's format by SGD, 32 per worker: the loss is below 1 by step 100."""
import gzip
import json

import harness

WORKERS, STEPS = 8, 100


class Digits(harness.Case):
    def setUp(self):
        super().setUp()
        self.data = self.out("digits")
        harness.run([harness.program("hdps"), "generate", "--kind=digits", "--format=idx", f"--out={self.data}",
                     f"--rows={32 * WORKERS * STEPS}", "--eval_rows=2000", "--seed=3"])

    def loss(self, mode, workers, **sets):
        """Of the evaluation behind STEPS steps, with what the mode of parallel training wants set."""
        summary = harness.train(self.data / "job.json", self.out(mode), 1, workers,
                                {"train.max_steps": str(STEPS), "model.device": "cpu", **sets})
        self.assertEqual(summary["steps"], STEPS)
        harness.figure(f"digits, {mode}, {workers} workers: loss {summary['eval_logloss']:.3f} at step {STEPS} "
                       f"(ln 10 = 2.303 at the start)")
        return summary["eval_logloss"]

    def cut(self, **shards):
        blocks = [{"layers": [layer], "shard": shard} for layer, shard in shards.items()]
        return {"parallel.parallel_mode": "hybrid_parallel", "parallel.blocks": json.dumps(blocks)}

    def test_data_parallel(self):
        one = self.loss("one", 1)
        many = self.loss("data_parallel", WORKERS)
        self.assertLess(many, 1.0)
        self.assertLess(abs(one - many), 1e-5)

    def test_every_mode_gives_the_same_loss(self):
        plain = self.loss("data_parallel", WORKERS)
        for mode, sets in (
                ("optimizer_parallel", {"parallel.enable_parallel_optimizer": "true"}),
                ("two_copies", {"parallel.interleave_num": "2"}),
                ("columns_then_rows", self.cut(hidden1=[1, WORKERS], hidden2=[WORKERS, 1])),
                ("columns_and_rows_in_two_copies", {**self.cut(hidden1=[2, 2]), "parallel.interleave_num": "2"})):
            with self.subTest(mode):
                loss = self.loss(mode, WORKERS, **sets)
                self.assertLess(loss, 1.0)
                self.assertLess(abs(loss - plain), 1e-5)

    def test_packed_files_are_the_same(self):
        plain = harness.train(self.data / "job.json", self.out("plain"), sets={"train.max_steps": "3"})
        for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"):
            path = self.data / name
            with gzip.open(f"{path}.gz", "wb", compresslevel=1) as packed:
                packed.write(path.read_bytes())
            path.unlink()
        packed = harness.train(self.data / "job.json", self.out("packed"),
                               sets={"train.max_steps": "3", "data.train.0": f"{self.data}/train-images-idx3-ubyte.gz"})
        self.assertEqual(plain["digest"], packed["digest"])

    def test_mistakes_are_the_operators(self):
        labels = self.data / "eval-labels-idx1-ubyte"
        whole = labels.read_bytes()
        for spoil, expected in ((whole[:-1], "the file ends inside"), (whole + b"x", "there are bytes behind"),
                                (None, "its labels are not there")):
            labels.unlink() if spoil is None else labels.write_bytes(spoil)
            done = harness.train(self.data / "job.json", self.out("spoiled"), sets={"train.max_steps": "2"}, expect=2)
            self.assertIn(expected, done.stderr)


if __name__ == "__main__":
    harness.main()
