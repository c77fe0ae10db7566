"""Tests days of a log that drifts: each day's job begins from the one before it."""
import json
import math
import random
import shutil

import harness

DAYS, ROWS, EVAL_ROWS = 5, 6000, 8000
BATCH = 100  # Divides the rows of a day, so that a job over all days makes the same steps.
HDPS = harness.program("hdps")


def planted(day, rows, seed):
    """Rows of one day: effects of `a` and `b` turn from day to day; `c` has one of its own from day three on."""
    draw = random.Random(f"{seed} {day}")
    lines = []
    for _ in range(rows):
        a, b, c = draw.randrange(60), draw.randrange(40), draw.randrange(30)
        logit = 1.5 * math.sin(a + 0.15 * day) + math.cos(2 * b + 0.1 * day) - 0.5
        if day >= 2:
            logit += 2 if c % 2 else -2
        lines.append(f"{int(draw.random() < 1 / (1 + math.exp(-logit)))},a{a},b{b},c{c}\n")
    return "".join(lines)


class Init(harness.Case):
    def setUp(self):
        super().setUp()
        self.files = []
        for day in range(DAYS):
            self.files.append(self.out(f"day_{day}.csv"))
            self.files[-1].write_text(planted(day, ROWS, "train"))
        self.eval = self.out("eval.csv")
        self.eval.write_text(planted(DAYS - 1, EVAL_ROWS, "eval"))

    def job(self, name, files, columns="abc", **model):
        kind = {name: {} if name in columns else {"type": "skip"} for name in "abc"}
        columns = [{"name": "y", "type": "label"}, *({"name": name, **kind[name]} for name in "abc")]
        return harness.write_job(self.out(f"{name}.json"), {
            "name": name,
            "data": {"train": list(map(str, files)), "eval": [str(self.eval)], "columns": columns, "shuffle_rows": 0},
            "model": {"type": "fm", "embedding_dim": 4, "device": "cpu", **model},
            "train": {"batch_size": BATCH, "epochs": 1}, "cluster": {"shards": 8}})

    def days(self, columns_of, **model):
        """A job a day, each from the one before; returns the last summary."""
        for day in range(DAYS):
            job = self.job(f"job_{day}_{columns_of(day)}", self.files[day:day + 1], columns_of(day), **model)
            extra = [f"--init={self.out(self.before)}"] if day else []
            self.before = f"day_{day}_{columns_of(day)}"
            summary = harness.train(job, self.out(self.before), servers=1 + day % 3, extra=extra)
        return summary

    def whole_and_days(self, rule, **model):
        """The summaries of one job over all days, and of the last of a job a day."""
        whole = harness.train(self.job(f"whole_{rule}", self.files, **model), self.out(f"whole_{rule}"), servers=2)
        last = self.days(lambda day: "abc", **model)
        harness.figure(f"five days, {rule}: AUC {last['eval_auc']:.5f}, in one job {whole['eval_auc']:.5f}")
        return whole, last

    def test_days_end_as_one_job_over_all_of_them(self):
        """Under a rule that does not count steps the final digest is the same, and so is the AUC."""
        even = {f"{of}_optimizer": {"kind": "adagrad", "learning_rate": 0.05} for of in ("wide", "deep", "dense")}
        whole, last = self.whole_and_days("adagrad", **even)
        self.assertLess(abs(last["eval_auc"] - whole["eval_auc"]), 0.001)
        self.assertEqual(last["digest"], whole["digest"])

    def test_days_end_so_under_adam_too(self):
        """The corrections of lazy adam go on from the steps of the days before."""
        whole, last = self.whole_and_days("default")
        self.assertEqual(last["digest"], whole["digest"])

    def test_a_feature_of_day_three_is_learned(self):
        without = self.days(lambda day: "ab")
        having = self.days(lambda day: "abc" if day >= 2 else "ab")
        harness.figure(f"with a feature of day three: AUC {having['eval_auc']:.4f}, without {without['eval_auc']:.4f}")
        self.assertGreater(having["eval_auc"], without["eval_auc"] + 0.05)

    def test_daemons_and_mistakes(self):
        """Daemons begin as the one process does; what does not fit is told, and refused where nothing does."""
        first = self.job("first", self.files[:1])
        harness.train(first, self.out("first"))
        second = self.job("second", self.files[1:2])
        init = f"--init={self.out('first')}"
        alone = harness.train(second, self.out("alone"), extra=[init])
        together = harness.cluster(second, self.out("together"), servers=2, extra=[init])
        self.assertEqual(together["digest"], alone["digest"])
        other = self.job("other", self.files[1:2], embedding_dim=5)
        said = harness.train(other, self.out("other"), extra=[init], expect=None).stderr
        self.assertRegex(said, r"deep +dim 5 +dim 4 +begins anew: another dim")
        self.assertRegex(said, r"wide +dim 1 +dim 1 +taken")
        shutil.copytree(self.out("first"), self.out("torn"))
        torn, = self.out("torn").glob("checkpoint/step_*")
        for file in torn.iterdir():
            if file.name != "manifest.json":
                file.write_bytes(file.read_bytes()[:-9])
        for wrong, job, expected in ((self.out("nowhere"), second, "--out of a run"),
                                     (self.out("first"), self.nothing(), "nothing of it fits this job"),
                                     (torn, second, "torn")):
            for command in (HDPS, "train"), (harness.program("hdps-scheduler"), "--listen=tcp://127.0.0.1:0"):
                done = harness.run([*command, f"--job={job}", f"--out={self.out('refused')}", f"--init={wrong}"],
                                   expect=None)
                self.assertIn(done.returncode, (2, 3), done.stderr)
                self.assertIn(expected, done.stderr)
                self.assertEqual(done.returncode, 3 if wrong == torn else 2, done.stderr)
                self.assertEqual(list(self.out("refused").glob("checkpoint/*")), [])

    def nothing(self):
        job = json.loads(self.job("nothing", self.files[1:2]).read_text())
        job["model"] = {"type": "graph", "tables": [{"name": "t", "dim": 2}], "layers": [
            {"name": "rows", "kind": "embedding", "table": "t"}, {"name": "top", "inputs": ["rows"], "units": 1}]}
        return harness.write_job(self.out("nothing.json"), job)


if __name__ == "__main__":
    harness.main()
