"""Every shell command of README.md and of the pages of docs/ runs, the job file of the README is valid,
and the fields of a run's files are those that are documented."""
import json
import os
import re
import shlex
import shutil

import harness
import pages

RESULTS = pages.RECORDS / "results.md"


class Readme(pages.Case):
    def test_commands(self):
        self.run_commands(pages.README, 4)

    def test_commands_of_pages(self):
        """Each page has a folder of its own: a page needs what itself has made, and nothing else."""
        ran = 0
        for page in pages.for_users():
            if page in (pages.README, pages.EXTENDING, pages.TUTORIAL, pages.PYTORCH) or not pages.blocks(page, "sh"):
                continue
            with self.subTest(page=page.name):
                shutil.rmtree(self.folder / "out", ignore_errors=True)
                self.run_commands(page)
                ran += 1
                if page.name == "resume.md":
                    summary = harness.summary_of(self.folder / "out" / "stopped")
                    self.assertGreater(summary["resumed_from"], 0)
        self.assertGreaterEqual(ran, 8)

    def test_commands_of_extending(self):
        """Nothing of a checkout but its history is needed: where there is none, the example says so."""
        if not (harness.ROOT / ".git").exists():
            self.skipTest("no history in this copy")
        os.symlink(harness.ROOT / ".git", self.folder / ".git")
        for name in ("cmake_install.cmake", "CMakeCache.txt"):
            self.assertTrue((harness.BIN.parent / name).exists())
        for part in ("bin", "python"):
            (self.folder / "build" / part).unlink()
        (self.folder / "build").rmdir()
        os.symlink(harness.BIN.parent, self.folder / "build")
        self.run_commands(pages.EXTENDING, 2)

    def test_ways_to_see_results(self):
        """Each command in the tables of docs/records/results.md exists: a script, a benchmark, or tests by name."""
        benchmarks = self.shell("build/bin/hdps-bench --list")
        tests = harness.run(["ctest", "--test-dir", harness.BIN.parent, "-N"]).stdout
        commands = re.findall(r"\| `([^`]+)` \|$", RESULTS.read_text(), re.M)
        self.assertGreater(len(commands), 10)
        for command in commands:
            words = shlex.split(command.replace(r"\|", "|"))  # As a table writes what would end its cell.
            if words[0] == "ctest":
                self.assertRegex(tests, words[words.index("-R") + 1], command)
            elif words[0].endswith("hdps-bench"):
                self.assertIn(f"  {words[1]} ", benchmarks, command)
            else:
                self.assertTrue((harness.ROOT / words[0]).exists(), command)

    def test_fields_of_a_runs_files(self):
        """Each field that a run writes is described, and each that is described is written."""
        out = self.folder / "out"
        again = {"name": "again", "files": [str(harness.CENSUS.parent / "adult.test.gz")]}
        sets = {"train.epochs": 1, "model.vocab_cache_size": 100, "data.eval_sets": [again],
                "train.plateau.patience": 1, "train.progressive.window": 1000,
                "train.metrics": '["auc","logloss","ece"]'}
        summary = harness.train(harness.CENSUS, out, 1, 1, sets)
        # Servers tell the ages of rows with their heartbeats.
        harness.train(harness.CENSUS, self.folder / "async", 1, 1,
                      {"train.mode": "async", "train.epochs": 6, "cluster.heartbeat_ms": 50})
        metrics = [json.loads(line) for folder in (out, self.folder / "async")
                   for line in (folder / "metrics.jsonl").read_text().splitlines()]
        written = {"summary.json": set(summary), "metrics.jsonl": set().union(*metrics)}
        for file, fields in written.items():
            table = pages.RUN_FILES.read_text().split(f"\n## {file}\n")[1].lstrip().split("\n\n")[0]
            described = set()
            for row in table.splitlines()[2:]:
                described |= set(re.findall(r"`(\w+)`", row.split("|")[1]))
            # These stand there where a figure has no value alone.
            self.assertEqual(described, fields | {"eval_auc_undefined", "eval_undefined"}, file)

    def test_job_file(self):
        (text,) = pages.blocks(pages.README, "json")
        for file in json.loads(text)["data"]["train"] + json.loads(text)["data"]["eval"]:
            (self.folder / file).write_text("")
        job = self.folder / "job.json"
        job.write_text(text)
        printed = self.shell(f"build/bin/hdps train --job={job} --out=out --print_config")
        again = self.folder / "again.json"
        again.write_text(printed)
        self.assertEqual(self.shell(f"build/bin/hdps train --job={again} --out=out --print_config"),
                         printed)


if __name__ == "__main__":
    harness.main()
