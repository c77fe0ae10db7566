"""Tests the path from files to a trained model without handwritten lines: prepare, generate, report."""
import gzip
import json
import subprocess

import harness

HEADER = ("age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex,"
          "capital-gain,capital-loss,hours-per-week,native-country,income\n")
HDPS = harness.program("hdps")


def census(name):
    return gzip.open(harness.CENSUS.parent / f"{name}.gz", "rt").read()


def mistake(case, command, *needles):
    """Status 2, a message with every needle, in one line that begins with the command's name."""
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60)
    with case.subTest(" ".join(str(c) for c in command[1:])):
        case.assertEqual(done.returncode, 2, done.stderr)
        for needle in needles:
            case.assertIn(needle, done.stderr)


class Prepare(harness.Case):
    def prepared(self, *arguments, out="prepared"):
        said = harness.run([HDPS, "prepare", *arguments, f"--out={self.out(out)}"]).stdout
        self.assertIn((self.out(out) / "report.txt").read_text(), said)
        return self.out(out) / "job.json"

    def test_census_with_a_header_trains_without_an_edit(self):
        """The table as it is published, with its header: numbers, categories, a label of two words that the
        second file writes in another way."""
        self.out("adult.data").write_text(HEADER + census("adult.data"))
        self.out("adult.test").write_text(HEADER + census("adult.test"))
        job = self.prepared(self.out("adult.data"), f"--eval={self.out('adult.test')}")
        label = [c for c in json.loads(job.read_text())["data"]["columns"] if c.get("type") == "label"]
        self.assertEqual(label, [{"name": "income", "type": "label", "positive": [">50K", ">50K."]}])
        done = harness.train(job, self.out("run"), 1, 2)
        harness.figure(f"census by its prepared job: test AUC {done['best_auc']:.4f}, best kept")
        self.assertEqual(done["bad_rows"], 0)
        self.assertGreaterEqual(done["best_auc"], 0.9214)
        # The second file as it is published, without a header.
        self.out("adult.test").write_text(census("adult.test"))
        job = self.prepared(self.out("adult.data"), f"--eval={self.out('adult.test')}", out="bare")
        bare = harness.train(job, self.out("run_bare"), 1, 2)
        self.assertEqual((bare["digest"], bare["eval_auc"]), (done["digest"], done["eval_auc"]))

    def test_columns_in_another_order_train_the_same(self):
        rows = [line.split(",") for line in (HEADER + census("adult.data")).splitlines() if line.strip()][:4001]
        order = list(range(len(rows[0])))[::-1]
        for name, columns in (("a.csv", range(len(order))), ("b.csv", order)):
            self.out(name).write_text("".join(",".join(row[c].strip() for c in columns) + "\n" for row in rows))
        job = json.loads(self.prepared(self.out("a.csv")).read_text())
        job["data"].pop("eval", None)
        job["data"].pop("validation_share", None)
        job["train"].pop("early_stop", None)
        job["train"]["epochs"] = 1
        digests = set()
        for name in ("a.csv", "b.csv"):
            job["data"]["train"] = [name]
            path = harness.write_job(self.out("job.json"), job)
            digests.add(harness.train(path, self.out("run_" + name))["digest"])
        self.assertEqual(len(digests), 1)

    def test_files_of_a_folder_and_of_a_pattern(self):
        """Rows of five files in two folders are those of one file."""
        lines = census("adult.data").splitlines(keepends=True)[:2000]
        job = json.loads(harness.CENSUS.read_text())
        job["data"].pop("eval")
        job["train"] = {"epochs": 1, "batch_size": 128}
        for part in range(5):
            folder = self.out(f"day={part // 3}")
            folder.mkdir(exist_ok=True)
            (folder / f"part-{part}.csv").write_text("".join(lines[part * 400:(part + 1) * 400]))
            (folder / "_SUCCESS").write_text("")
        self.out("all.csv").write_text("".join(lines))
        digests = {}
        for name, files in (("one", ["all.csv"]), ("pattern", ["day=*/part-?.csv"]),
                            ("folders", ["day=0", "day=1"])):
            job["data"]["train"] = files
            path = harness.write_job(self.out("job.json"), job)
            done = harness.run([HDPS, "train", f"--job={path}", f"--out={self.out(name)}"])
            self.assertIn("data: 1 file of" if name == "one" else "data: 5 files of", done.stderr)
            digests[name] = harness.summary_of(self.out(name))["digest"]
        self.assertEqual(len(set(digests.values())), 1, digests)
        # Members and later commands find them too.
        job["data"]["train"] = ["day=*/*.csv"]
        path = harness.write_job(self.out("job.json"), job)
        self.assertEqual(harness.cluster(path, self.out("cluster"))["digest"], digests["one"])
        said = harness.run([HDPS, "predict", f"--checkpoint={self.out('one')}",
                            f"--data={self.out('day=*/*.csv')}"])
        self.assertEqual(len(said.stdout.split()), 2000)

    def test_generate_trains_as_it_is(self):
        for model in ("linear", "wide_deep"):
            data = harness.generate(self.out(model), rows=40000, eval_rows=8000, vocabulary=100, model=model)
            done = harness.train(data / "job.json", data / "run")
            harness.figure(f"generated log, {model}: eval AUC {done['eval_auc']:.4f}")
            self.assertGreater(done["eval_auc"], 0.65)
            self.assertFalse((data / "run" / "job.json").exists())

    def test_a_generated_log_is_prepared(self):
        """What generate writes for itself, prepare makes a job of too: criteo is told from the content."""
        data = harness.generate(self.out("log"), rows=40000, eval_rows=8000, vocabulary=100)
        best = harness.train(data / "job.json", self.out("own"))["eval_auc"]
        job = self.prepared(data / "train.tsv", data / "eval.tsv")
        self.assertEqual(json.loads(job.read_text())["data"]["format"], "criteo")
        done = harness.train(job, self.out("run"))
        harness.figure(f"a generated log by its prepared job: {done['eval_auc']:.4f}, by its own {best:.4f}")
        self.assertGreater(done["eval_auc"], 0.65)

    def test_rows_are_kept_beforehand(self):
        """prepare --cache writes files that training and evaluate read, with the figures of the text."""
        data = harness.generate(self.out("log"), rows=8000, eval_rows=2000, vocabulary=100)
        job = self.prepared(data / "train.tsv", f"--eval={data / 'eval.tsv'}", "--cache")
        rows = self.out("prepared") / "rows"
        self.assertEqual(len(list(rows.glob("*.rows"))), 2)
        said = harness.run([HDPS, "prepare", f"--job={job}", "--cache"]).stdout
        self.assertEqual(said.count(", as it was"), 2, said)
        text = harness.train(job, self.out("text"), 1, 1, {"data.cache": "none"})
        for workers in (1, 3):
            out = self.out(f"kept{workers}")
            kept = harness.train(job, out, 1, workers)
            self.assertEqual(kept["bad_rows"], text["bad_rows"])
            self.assertIn(f"8000 rows are read from {rows}", (out / "log" / "train.log").read_text())
            if workers == 1:
                self.assertEqual((kept["digest"], kept["eval_auc"]), (text["digest"], text["eval_auc"]))
        scored = [harness.run([HDPS, "evaluate", f"--checkpoint={self.out('text')}", f"--data={data / 'eval.tsv'}",
                               f"--job={job}", setting]).stdout
                  for setting in ("--set=data.cache=none", "--set=data.cache=auto")]
        self.assertEqual(scored[0], scored[1])
        # A byte that changes is found, and what is learned stays.
        kept = next(iter(rows.glob("*.rows")))
        damaged = bytearray(kept.read_bytes())
        damaged[len(damaged) // 2] ^= 1
        kept.write_bytes(damaged)
        done = harness.train(job, self.out("damaged"), 1, 1)
        self.assertIn(f"{kept} is damaged", (self.out("damaged") / "log" / "train.log").read_text())
        self.assertEqual(done["digest"], text["digest"])

    def test_every_form_of_file_becomes_a_job(self):
        rows = range(600)
        texts = {
            "svm": "".join(f"{1 if n % 3 else -1} {n % 7}:1{' 90:0.5' if n % 2 else ''}\n" for n in rows),
            "ffm": "".join(f"{1 if n % 3 else -1} 0:{n % 7}:1 1:{50 + n % 5}:1\n" for n in rows),
            "fm": "".join(f"{1 if n % 3 else -1} {n % 7}:1 {50 + n % 5}:1\n" for n in rows),
            "tsv": "y\tn\tc\n" + "".join(f"{1 if n % 3 else -1}\t{n * 1.5}\tc{n % 9}\n" for n in rows),
        }
        for name, text in texts.items():
            path = self.out(f"rows.{name}.gz")
            path.write_bytes(gzip.compress(text.encode()))
            job = self.prepared(path, out=name)
            self.assertEqual(harness.train(job, self.out("run_" + name))["bad_rows"], 0, name)

    def test_mistakes(self):
        good = self.out("good.csv")
        good.write_text("n,c,y\n" + "".join(f"{n},c{n % 5},{n % 2}\n" for n in range(300)))
        bare = self.out("bare.csv")
        bare.write_text("".join(f"{n},c{n % 5},{n % 2}\n" for n in range(300)))
        prose = self.out("prose.txt")
        prose.write_text("It was a dark night.\nNobody was there.\n")
        empty = self.out("empty.csv")
        empty.write_text("")
        taken = self.out("taken")
        taken.mkdir()
        (taken / "job.json").write_text("mine")
        out = f"--out={self.out('new')}"
        mistake(self, [HDPS, "prepare", out], "no file is named")
        mistake(self, [HDPS, "prepare", good], "--out is missing")
        mistake(self, [HDPS, "prepare", self.out("none.csv"), out], "none.csv", "no such file")
        mistake(self, [HDPS, "prepare", good, f"--out={taken}"], "job.json already")
        self.assertEqual((taken / "job.json").read_text(), "mine")
        mistake(self, [HDPS, "prepare", good, out, "--label=yy"], "--label=yy", "did you mean", "\"y\"")
        mistake(self, [HDPS, "prepare", good, out, "--label=c", "--task=rating"], "label 'c'", "has texts")
        mistake(self, [HDPS, "prepare", good, out, "--model=deepmf"], "--model=deepmf", "deepfm")
        mistake(self, [HDPS, "prepare", good, out, f"--eval={good}"], "--eval=", "train on too")
        mistake(self, [HDPS, "prepare", bare, out, f"--eval={good}"], "good.csv:1", "a header", "has none")
        other = self.out("other.csv")
        other.write_text("".join(f"{n},{n % 2}\n" for n in range(300)))
        mistake(self, [HDPS, "prepare", good, out, f"--eval={other}"], "other.csv:1", "no header")
        mistake(self, [HDPS, "prepare", prose, out], "prose.txt:1", "expected rows of csv")
        mistake(self, [HDPS, "prepare", empty, out], "empty.csv", "no row")
        mistake(self, [HDPS, "prepare", good, out, "--lable=y"], "--lable", "--label")
        mistake(self, [HDPS, "generate", out, "--model=liner"], "--model=liner", "linear")
        self.assertFalse(self.out("new").exists())


class Report(harness.Case):
    def test_one_run_and_two(self):
        data = harness.generate(self.out("log"), rows=20000, eval_rows=4000, vocabulary=100)
        for name, rate in (("a", 0.006), ("b", 0.02)):
            harness.train(data / "job.json", self.out(name), 1, 2, {"model.wide_optimizer.learning_rate": rate})
        said = harness.run([HDPS, "report", self.out("a")])
        self.assertEqual(said.stdout.strip(), f"{self.out('a')}/report.html")
        self.assertEqual(said.stderr, "")
        page = (self.out("a") / "report.html").read_text()
        for part in ("AUC", "log loss", "loss of training", "Where time goes", "compute", "format criteo",
                     "generated_log", "&quot;batch_size&quot;: 256"):
            self.assertIn(part, page)
        # The scripts stand behind all that a run has to say, and a policy allows these alone.
        told = page[:page.index("<script>")]
        for none in ("<script src", "http:", "https:"):
            self.assertNotIn(none, told)
        self.assertIn("default-src 'none'", told)
        both = self.out("both.html")
        harness.run([HDPS, "report", self.out("a"), self.out("b"), f"--html={both}"])
        page = both.read_text()
        self.assertIn("Settings that differ", page)
        self.assertIn("learning_rate</td><td>0.006</td><td>0.02</td>", page)

        # A run that died: its last line is cut, nothing is summed up.
        metrics = self.out("a") / "metrics.jsonl"
        metrics.write_bytes(metrics.read_bytes()[:-20])
        (self.out("a") / "summary.json").unlink()
        said = harness.run([HDPS, "report", self.out("a")])
        self.assertIn("cut off", said.stderr)
        self.assertIn("no summary.json", said.stderr)
        self.assertIn("not finished", (self.out("a") / "report.html").read_text())

    def test_mistakes(self):
        empty = self.out("empty")
        empty.mkdir()
        mistake(self, [HDPS, "report"], "0 folders", "hdps report OUT")
        mistake(self, [HDPS, "report", "a", "b", "c"], "3 folders")
        mistake(self, [HDPS, "report", self.out("nowhere")], "nowhere", "no such folder", "--out of a run")
        mistake(self, [HDPS, "report", empty], "neither metrics.jsonl nor summary.json")
        (empty / "metrics.jsonl").write_text("")
        mistake(self, [HDPS, "report", empty, f"--html={self.out('no/such/folder.html')}"], "--html=", "folder.html")
        mistake(self, [HDPS, "report", empty, "--htlm=x"], "--htlm", "--html")


if __name__ == "__main__":
    harness.main()
