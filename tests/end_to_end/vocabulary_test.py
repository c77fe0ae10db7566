"""Tests vocabularies by real programs: hdps prepare counts as a plain count does, seldom values share one row a
feature wherever rows are read, a checkpoint is enough to score rows, and blocks of lines are held out."""
import collections
import json
import math
import re
import shutil

import harness

HDPS = harness.program("hdps")
NUMBERS, FEATURES = 13, 26
MASK = (1 << 64) - 1


def mix_bits(x):
    """MixBits() of common/base/hash.h."""
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9 & MASK
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb & MASK
    return x ^ (x >> 31)


def combine_keys(a, b):
    return mix_bits((a * 0x9e3779b97f4a7c15 & MASK) ^ mix_bits(b))


def is_held_out(line, seed, share, block_lines):
    """Line numbers from 0, of the first file."""
    salted = mix_bits(seed ^ 0x76616c6964617465)
    return (combine_keys(combine_keys(salted, 0), line // block_lines) >> 11) < share * 2 ** 53


def counts_of(lines):
    """How often each value of each feature comes."""
    counts = [collections.Counter() for _ in range(FEATURES)]
    for line in lines:
        for count, value in zip(counts, line.split("\t")[1 + NUMBERS:]):
            count[value] += 1
    return counts


class Vocabulary(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        import pathlib, tempfile
        cls.data = pathlib.Path(tempfile.mkdtemp(prefix="hdps_data_"))
        harness.generate(cls.data, rows=30000, eval_rows=3000, vocabulary=3000, zipf=1.1, seed=4)
        cls.train_lines = (cls.data / "train.tsv").read_text().splitlines()
        cls.eval_lines = (cls.data / "eval.tsv").read_text().splitlines()

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.data, ignore_errors=True)

    def prepare(self, out, *flags, evaluated=True):
        files = [self.data / "train.tsv"] + ([f"--eval={self.data / 'eval.tsv'}"] if evaluated else [])
        harness.run([HDPS, "prepare", *files, f"--out={self.out(out)}", "--model=logistic", *flags])
        return self.out(out) / "job.json"

    def assert_counted(self, job, lines, min_count):
        """The report's numbers, feature by feature, are those of a plain count. Returns the frequent values."""
        told = re.findall(r"^C(\d+) .*; keys for ([\d,]+) of ([\d,]+) values$",
                          (job.parent / "report.txt").read_text(), re.MULTILINE)
        counts = counts_of(lines)
        frequent = [{value for value, n in count.items() if n >= min_count} for count in counts]
        self.assertEqual([tuple(int(n.replace(",", "")) for n in row) for row in told],
                         [(c + 1, len(frequent[c]), len(counts[c])) for c in range(FEATURES)])
        return counts, frequent

    def predict(self, checkpoint, lines, *flags):
        rows = self.out("rows.tsv")
        rows.write_text("\n".join(lines) + "\n")
        return harness.run([HDPS, "predict", f"--checkpoint={checkpoint}", f"--data={rows}", *flags]).stdout

    def replaced(self, line, frequent, by):
        """The line with its seldom values replaced."""
        cells = line.split("\t")
        for c in range(FEATURES):
            if cells[1 + NUMBERS + c] not in frequent[c]:
                cells[1 + NUMBERS + c] = by
        return "\t".join(cells)

    def test_seldom_values_share_a_row_a_feature_in_training_and_scoring(self):
        for min_count in (100, 7):
            job = self.prepare(f"p{min_count}", f"--min_count={min_count}")
            counts, frequent = self.assert_counted(job, self.train_lines, min_count)
            kept = sum(map(len, frequent))
            shared = sum(len(f) < len(c) for f, c in zip(frequent, counts))
            self.assertEqual(shared, FEATURES, "every feature has seldom values")
            # Buckets of numbers are no values of the vocabulary.
            run = self.out(f"run{min_count}")
            done = harness.train(job, run, 2, 2, {"data.features": [], "train.epochs": 1, "train.evals_per_epoch": 0})
            harness.figure(f"min_count {min_count}: {kept} of {sum(map(len, counts))} values, rows {done['rows']}, "
                           f"eval AUC {done['eval_auc']:.4f}")
            self.assertEqual(done["rows"], kept + FEATURES, "a row for each frequent value, and one a feature")
            # Lines as they are, and with every seldom value replaced by one that never came.
            raw = self.predict(run, self.eval_lines)
            self.assertEqual(self.predict(run, [self.replaced(l, frequent, "never") for l in self.eval_lines]), raw)
            self.assertNotEqual(self.predict(run, [self.replaced(l, [set()] * FEATURES, "never")
                                                   for l in self.eval_lines]), raw)
            # Evaluation of the prepared job is of the same scores: a probability is a rounded 32-bit float.
            loss = bound = 0.0
            for text, line in zip(raw.split(), self.eval_lines):
                p = float(text)
                of_label = p if line[0] == "1" else 1 - p
                loss -= math.log(of_label) / len(self.eval_lines)
                bound += 2 ** -22 / of_label / len(self.eval_lines)
            harness.figure(f"logloss of evaluate {done['eval_logloss']:.9f}, of predict {loss:.9f}, bound {bound:.1e}")
            self.assertLessEqual(abs(done["eval_logloss"] - loss), bound)

    def test_a_checkpoint_is_enough_to_score_rows(self):
        job = self.prepare("p", "--min_count=100")
        keys = (job.parent / "vocabulary.keys").read_bytes()
        harness.train(job, self.out("run"), 1, 1, {"train.epochs": 1, "checkpoint.every_steps": 20,
                                                   "checkpoint.delta_every_steps": 10, "train.max_steps": 30})
        raw = self.predict(self.out("run"), self.eval_lines[:500])
        shutil.copytree(self.out("run") / "checkpoint", self.out("moved"))
        shutil.move(job.parent, self.out("elsewhere"))
        self.assertEqual(self.predict(self.out("moved"), self.eval_lines[:500]), raw)
        # So is one exported for serving, which takes the vocabulary with it.
        harness.run([HDPS, "export", f"--checkpoint={self.out('moved')}", "--format=serving",
                     f"--out={self.out('serving')}"])
        self.assertEqual(self.predict(self.out("serving"), self.eval_lines[:500]), raw)
        # One of changes finds the copy in the full one that it builds on.
        full = self.out("moved") / "step_0000000020"
        copies = sorted(str(path.parent.name) for path in self.out("moved").glob("*/vocabulary.keys"))
        self.assertIn(full.name, copies)
        self.assertEqual((full / "vocabulary.keys").read_bytes(), keys)
        # Damaged, another one's, or none: refused by name, with the mend.
        last = self.out("moved") / sorted(path.name for path in self.out("moved").iterdir())[-1]
        damaged = keys[:-40] + bytes([keys[-40] ^ 1]) + keys[-39:]
        for text, needle in ((damaged, "no whole vocabulary"), (None, "there is no such file")):
            for copy in self.out("moved").glob("*/vocabulary.keys"):
                copy.write_bytes(text) if text else copy.unlink()
            rows = self.out("rows.tsv")
            done = harness.run([HDPS, "predict", f"--checkpoint={last}", f"--data={rows}"], expect=2)
            for part in (needle, "data.vocabulary.file", "--set=data.vocabulary.file=FILE"):
                self.assertIn(part, done.stderr)
        named = self.out("elsewhere") / "vocabulary.keys"
        self.assertEqual(self.predict(self.out("moved"), self.eval_lines[:500], f"--set=data.vocabulary.file={named}"),
                         raw)
        # Another vocabulary is another job.
        other = self.prepare("p", "--min_count=7")
        done = harness.train(other, self.out("run"), 1, 1, {"train.epochs": 1}, expect=2)
        self.assertIn("data.vocabulary.checksum", done.stderr)

    def test_blocks_of_lines_are_held_out_and_not_counted(self):
        job = self.prepare("p", "--split=blocks", "--min_count=50", evaluated=False)
        text = job.read_text()
        self.prepare("again", "--split=blocks", "--min_count=50", evaluated=False)
        for name in ("job.json", "vocabulary.keys", "report.txt"):
            self.assertEqual((self.out("again") / name).read_bytes(), (job.parent / name).read_bytes(), name)
        settings = json.loads(text)
        self.assertEqual((settings["seed"], settings["data"]["validation_block_lines"]), (2020, 1000))
        share = settings["data"]["validation_share"]
        held_out = [is_held_out(n, 2020, share, 1000) for n in range(len(self.train_lines))]
        harness.figure(f"share {share}: lines held out {sum(held_out)} of {len(held_out)}, "
                       f"blocks {[n // 1000 for n in range(0, len(held_out), 1000) if held_out[n]]}")
        self.assert_counted(job, [l for l, out in zip(self.train_lines, held_out) if not out], 50)
        # What is evaluated is what is held out.
        done = harness.train(job, self.out("run"), 1, 2, {"train.epochs": 1})
        self.assertEqual(done["examples"], len(held_out) - sum(held_out))
        scored = self.predict(self.out("run"), [l for l, out in zip(self.train_lines, held_out) if out])
        self.assertEqual(len(scored.split()), sum(held_out))
        loss = bound = 0.0
        for p, line in zip(map(float, scored.split()), [l for l, out in zip(self.train_lines, held_out) if out]):
            of_label = p if line[0] == "1" else 1 - p
            loss -= math.log(of_label) / sum(held_out)
            bound += 2 ** -22 / of_label / sum(held_out)
        self.assertLessEqual(abs(done["best_logloss"] - loss), bound)

    def test_mistakes(self):
        train = self.data / "train.tsv"
        for flags, needles in (
                (["--min_count=-1"], ("--min_count=-1", "from 0 on")),
                (["--split=block"], ("--split=block", "blocks")),
                (["--split=blocks", f"--eval={self.data / 'eval.tsv'}"], ("--split=blocks", "eval.tsv"))):
            done = harness.run([HDPS, "prepare", train, f"--out={self.out('m')}", *flags], expect=2)
            for needle in needles:
                self.assertIn(needle, done.stderr)


if __name__ == "__main__":
    harness.main()
