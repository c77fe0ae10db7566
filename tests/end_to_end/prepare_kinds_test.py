"""Tests hdps prepare and training on files of other programs: what is printed, and what is refused."""
import json
import math
import os
import pty
import random
import shlex
import shutil
import subprocess

import harness

HDPS = harness.program("hdps")


def table(header, rows):
    return header + "\n" + "".join(",".join(str(cell) for cell in row) + "\n" for row in rows)


def clicks(seed, rows, users=200, items=60):
    """Rows of (user, item, how much it is liked from 1 to 5, 0 or 1): planted by user and item alone."""
    draw = random.Random(seed)
    taste = {("u", u): draw.gauss(0, 1) for u in range(users)} | {("i", i): draw.gauss(0, 1) for i in range(items)}
    for _ in range(rows):
        user, item = int(users * draw.random() ** 2), int(items * draw.random() ** 2)
        liked = taste["u", user] + taste["i", item] + draw.gauss(0, 0.7)
        yield user, item, min(5, max(1, round(3 + liked))), int(draw.random() < 1 / (1 + math.exp(-1.5 * liked)))


class Case(harness.Case):
    def prepare(self, *arguments, out="prepared", expect=0, **kwargs):
        return harness.run([HDPS, "prepare", *arguments, f"--out={self.out(out)}"], expect=expect, **kwargs)

    def column(self, name, out="prepared"):
        """The column as the job has it."""
        columns = json.loads((self.out(out) / "job.json").read_text())["data"]["columns"]
        return next(column for column in columns if column["name"] == name)


class Read(Case):
    def test_hashed_ids_train_as_categories(self):
        """Whole numbers beyond 2^53 that come again: no double tells all of them apart."""
        ids = [random.Random(n).randrange(1 << 62, 1 << 63) for n in range(200)]
        for name, seed, rows in (("t.csv", 1, 4000), ("e.csv", 2, 4000)):
            self.out(name).write_text(table("click,ad", ((y, ids[user]) for user, _, _, y in clicks(seed, rows))))
        said = self.prepare(self.out("t.csv"), f"--eval={self.out('e.csv')}").stdout
        self.assertIn("whole numbers beyond 2^53", said)
        self.assertEqual(self.column("ad"), {"name": "ad"})

    def test_an_index_of_pandas_is_passed_over(self):
        rows = [(n, y, item) for n, (_, item, _, y) in enumerate(clicks(3, 400))]
        self.out("t.csv").write_text(table(",y,c", rows))
        self.assertIn("column 1 has no name in the header", self.prepare(self.out("t.csv")).stdout)
        done = harness.train(self.out("prepared") / "job.json", self.out("run"))
        self.assertEqual(done["bad_rows"], 0)

    def test_commas_between_entries_and_quotes_that_do_not_pair(self):
        rows = list(clicks(4, 600))
        self.out("t.ffm").write_text("".join(f"{y},0:{u}:1,1:{i}:1\n" for u, i, _, y in rows))
        self.out("t.tsv").write_text("".join(
            f"{y}\t{i}\t" + (f'"{u % 9} inch\n' if u % 3 == 0 else f"{u % 9} inch\n") for u, i, _, y in rows))
        for name, form in (("t.ffm", "libffm"), ("t.tsv", "csv")):
            self.prepare(self.out(name), out=form)
            data = json.loads((self.out(form) / "job.json").read_text())["data"]
            self.assertEqual(data["format"], form)
            self.assertNotIn("max_bad_rows", data)
            self.assertEqual(harness.train(self.out(form) / "job.json", self.out("run_" + form))["bad_rows"], 0)
        self.assertEqual(data["quote"], "")

    def test_each_task_trains_without_an_edit(self):
        """Ratings, the same as yes and no and as classes, and rows that only say what happened."""
        rows = list(clicks(10, 3000))
        self.out("t.csv").write_text(table("user,item,rating", ((u, i, r) for u, i, r, _ in rows)))
        self.out("seen.csv").write_text(table("user,item", ((u, i) for u, i, r, _ in rows if r >= 4)))
        mean = sum(r for _, _, r, _ in rows) / len(rows)
        deviation = (sum((r - mean) ** 2 for _, _, r, _ in rows) / len(rows)) ** 0.5
        runs = {}
        for name, file, flags in (("rating", "t.csv", []), ("binary", "t.csv", ["--positive=>=4"]),
                                  ("classes", "t.csv", ["--task=classes"]), ("ranking", "seen.csv", [])):
            said = self.prepare(self.out(file), *flags, out=name).stdout
            runs[name] = harness.train(self.out(name) / "job.json", self.out("run_" + name))
            self.assertEqual(runs[name]["bad_rows"], 0, name)
            self.assertGreater(runs[name]["steps"], 50, name)
        self.assertIn("every row is one of label 1", said)
        harness.figure(f"ratings: rmse {runs['rating']['eval_metrics']['rmse']:.3f} of a deviation of {deviation:.3f}; "
                       f"as yes and no: AUC {runs['binary']['eval_auc']:.3f}; "
                       f"as classes: logloss {runs['classes']['eval_logloss']:.3f} of {math.log(5):.3f}")
        self.assertLess(runs["rating"]["eval_metrics"]["rmse"], 0.85 * deviation)
        self.assertGreater(runs["binary"]["eval_auc"], 0.8)
        self.assertLess(runs["classes"]["eval_logloss"], 0.95 * math.log(5))

    def test_the_words_to_train_can_be_pasted_and_the_folder_moved(self):
        folder = self.out("my data")
        folder.mkdir()
        (folder / "t.csv").write_text(table("u,y", ((u, y) for u, _, _, y in clicks(5, 300))))
        said = harness.run([HDPS, "prepare", "my data/t.csv", "--out=my data/it's"], cwd=self.out("")).stdout
        command = said.strip().splitlines()[-1].removeprefix("to train on it: ")
        self.assertEqual(shlex.split(command)[1:], ["train", "--job=my data/it's/job.json", "--out=my data/it's/run"])
        self.assertEqual(json.loads((folder / "it's/job.json").read_text())["data"]["train"], ["../t.csv"])
        shutil.move(folder, self.out("moved"))
        harness.train(self.out("moved/it's/job.json"), self.out("run"))

    def test_somebody_at_a_terminal_is_asked(self):
        rows = list(clicks(6, 600))
        self.out("t.csv").write_text(table("user,item,rating", ((u, i, r) for u, i, r, _ in rows)))
        host, terminal = pty.openpty()
        asked = subprocess.Popen([str(HDPS), "prepare", str(self.out("t.csv")), f"--out={self.out('asked')}"],
                                 stdin=terminal, stdout=terminal, stderr=terminal)
        os.close(terminal)
        said = b""
        while b"[rating] " not in said:
            said += os.read(host, 4096)
        os.write(host, b"classes\n")
        while True:
            try:
                more = os.read(host, 4096)
            except OSError:
                break
            if not more:
                break
            said += more
        os.close(host)
        said = said.decode()
        asked.wait(60)
        self.assertIn("is it rating or classes?", said)
        self.assertIn("classes", said.split("[rating] classes")[1], "what is made follows the answer")


class Refused(Case):
    def refused(self, *arguments, needles):
        done = self.prepare(*arguments, out="new", expect=2)
        for needle in needles:
            self.assertIn(needle, done.stderr)
        self.assertFalse(self.out("new").exists())

    def test_wishes_that_do_not_fit(self):
        good = self.out("good.csv")
        good.write_text(table('user,"a, b",rating', ((u, i, r) for u, i, r, _ in clicks(7, 600))))
        for flags, needles in (
                (["--skip=usr"], ["--skip=usr", "no such column", 'did you mean "user"']),
                (["--numeric=user", "--categorical=user"], ["named by --categorical too"]),
                (["--task=rankng"], ["--task=rankng", "binary, classes, rating or ranking", 'did you mean "ranking"']),
                (["--positive=>=9"], ["none is positive"]),
                (["--positive=>=x"], ['expected ">=4" with a number']),
                (["--task=binary"], ["more than two values", '--positive=">=4"']),
                (["--task=rating", "--positive=>=4"], ["beside --task=rating"])):
            with self.subTest(flags):
                self.refused(good, *flags, needles=needles)
        self.prepare(good, '--skip="a, b"', "--positive=>=4")
        self.assertEqual(self.column("a, b")["type"], "skip")
        self.assertEqual(self.column("rating")["positive"], ["4", "5"])

    def test_a_job_that_passes_over_rows_is_not_written_unasked(self):
        rows = list(clicks(8, 300))
        torn = self.out("torn.csv")
        torn.write_text(table("u,i,y", ((u, i, y) for u, i, _, y in rows)) + "1,2\n" * 9)
        self.refused(torn, needles=["torn.csv:302: 2 cells where there should be 3", "9 such rows of 309, 2.9%",
                                    "--max_bad_rows=9"])
        self.prepare(torn, "--max_bad_rows=9")
        self.assertEqual(json.loads((self.out("prepared") / "job.json").read_text())["data"]["max_bad_rows"], 9)

    def test_files_that_are_packed_or_written_otherwise(self):
        rows = table("u,y", ((u, y) for u, _, _, y in clicks(9, 300)))
        texts = {
            "utf16.txt": (rows.replace(",", "\t").encode("utf-16"), ["UTF-16", "iconv -f UTF-16 -t UTF-8"]),
            "mac.csv": (rows.replace("\n", "\r").encode(), ["CR alone", "tr '\\r'"]),
            "my rows.json": (json.dumps([{"u": 1}, {"u": 2}]).encode() + b"\n", ["JSON", "read_json", "'"]),
        }
        for name, module in (("rows.bz2", "bz2"), ("rows.xz", "lzma")):
            texts[name] = (__import__(module).compress(rows.encode()), ["unpack it with"])
        for name, (content, needles) in texts.items():
            with self.subTest(name):
                self.out(name).write_bytes(content)
                self.refused(self.out(name), needles=needles)


if __name__ == "__main__":
    harness.main()
