"""Tests what a user learns about the data: how it was read, and each mistake once with its place."""
import random

import harness

FIELDS = 3


def libfm_rows(rows, seed):
    """Rows of libFM's form; the label follows from a pair of indexes, which no sum over them can learn."""
    draw = random.Random(seed)
    lines = []
    for _ in range(rows):
        fields = [100 * field + draw.randrange(4) for field in range(FIELDS)]
        positive = (fields[0] + fields[1]) % 2 == 0
        lines.append(f"{1 if positive else -1} " + " ".join(f"{index}:1" for index in fields))
    return "\n".join(lines) + "\n"


class Data(harness.Case):
    def job(self, data, **model):
        return harness.write_job(self.out("job.json"), {
            "data": data, "train": {"batch_size": 64, "epochs": 10},
            "model": {"type": "deepfm", "embedding_dim": 8, "hidden": [], "device": "cpu",
                      "deep_optimizer": {"kind": "adagrad", "learning_rate": 0.1},
                      "embedding_init": {"kind": "normal", "scale": 0.1}, **model},
            "parallel": {"gradients_mean": True}})

    def test_a_libfm_file_has_pairs_to_learn(self):
        self.out("train.libfm").write_text(libfm_rows(4096, 1))
        self.out("eval.libfm").write_text(libfm_rows(1024, 2))
        data = {"format": "libfm", "num_fields": FIELDS, "train": ["train.libfm"], "eval": ["eval.libfm"]}
        done = harness.run([harness.program("hdps"), "train", f"--job={self.job(data)}",
                            f"--out={self.out('out')}"])
        self.assertIn("data: 1 file of format libfm: a label, 0 numeric columns, 3 sparse features", done.stderr)
        self.assertIn("train.libfm:1: label ", done.stderr)
        self.assertIn("1 key a row in 3 sparse features", done.stderr)
        self.assertIn("data: 1 file of format libfm", (self.out("out") / "log" / "train.log").read_text())
        auc = harness.summary_of(self.out("out"))["eval_auc"]
        harness.figure(f"AUC of pairs of a libfm file {auc:.3f}")
        self.assertGreater(auc, 0.95)

    def refused(self, data, *needles):
        """The message is all there is to read: one line, and nothing has begun."""
        done = harness.run([harness.program("hdps"), "train", f"--job={self.job(data)}",
                            f"--out={self.out('refused')}"], expect=2)
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 1, done.stderr)
        for needle in needles:
            self.assertIn(needle, lines[0])
        self.assertFalse(self.out("refused").exists())

    def test_mistakes_are_told_once_by_their_place(self):
        columns = [{"name": "y", "type": "label"}, {"name": "age", "type": "numeric"}, {"name": "job"}]
        rows = "".join(f"{n % 2},{n},j{n % 7}\n" for n in range(5000))
        data = {"format": "csv", "train": ["rows.csv"], "columns": columns}
        path = self.out("rows.csv")
        path.write_text("0,old,j1\n" + rows)
        self.refused(data, "rows.csv:1:3: 'old'")
        path.write_text("y,age,job\n" + rows)
        self.refused(data, "rows.csv:1: this line is a header", "data.header")
        path.write_text("job,y,age\n" + rows)
        self.refused(data, "rows.csv:1: this line is a header", "data.header")
        path.write_text("y,jobs,age\n" + rows)
        self.refused({**data, "header": True}, "rows.csv:1: the header has no column 'job'", "did you mean \"jobs\"")
        path.write_text("y,age,job\n" + rows)
        self.refused({**data, "header": True, "train": ["none*.csv"]}, "data.train.0: no file matches", "none*.csv")
        self.out("good.csv").write_text(rows)
        path.write_text("0,old,j1\n" + rows)
        self.refused({**data, "train": ["good.csv"], "eval": ["rows.csv"]}, "rows.csv:1:3: 'old'")


if __name__ == "__main__":
    harness.main()
