"""Every command of README.md, docs/operations.md, docs/data.md, docs/parallel.md and docs/extending.md runs, every link has a target, the job file of
the README is valid, and the fields of a run's files are those that are documented."""
import json
import os
import re
import shlex
import subprocess

import harness

README = harness.ROOT / "README.md"
OPERATIONS = harness.ROOT / "docs" / "operations.md"
DATA = harness.ROOT / "docs" / "data.md"
PARALLEL = harness.ROOT / "docs" / "parallel.md"
EXTENDING = harness.ROOT / "docs" / "extending.md"
RESULTS = harness.ROOT / "docs" / "results.md"


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.S)


class Readme(harness.Case):
    def setUp(self):
        super().setUp()
        # A folder that looks like the project's root, so that `out/` lands in the test's own.
        for name in ("examples", "scripts", "docs"):
            os.symlink(harness.ROOT / name, self.folder / name)
        (self.folder / "build").mkdir()
        os.symlink(harness.BIN, self.folder / "build" / "bin")

    def shell(self, text):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=self.folder,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600,
                              env={**os.environ, "HDPS_BIN": str(harness.BIN)})
        self.assertEqual(done.returncode, 0, f"{text}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}")
        return done.stdout

    def test_commands(self):
        self.run_commands(README, 7)

    def test_commands_of_operations(self):
        self.run_commands(OPERATIONS, 4)
        summary = harness.summary_of(self.folder / "out" / "stopped")
        self.assertGreater(summary["resumed_from"], 0)

    def test_commands_of_data(self):
        self.run_commands(DATA, 1)

    def test_commands_of_parallel(self):
        self.run_commands(PARALLEL, 1)

    def test_commands_of_extending(self):
        """Nothing of a checkout but its history is needed: where there is none, the example says so."""
        if not (harness.ROOT / ".git").exists():
            self.skipTest("no history in this copy")
        os.symlink(harness.ROOT / ".git", self.folder / ".git")
        for name in ("cmake_install.cmake", "CMakeCache.txt"):
            self.assertTrue((harness.BIN.parent / name).exists())
        (self.folder / "build" / "bin").unlink()
        (self.folder / "build").rmdir()
        os.symlink(harness.BIN.parent, self.folder / "build")
        self.run_commands(EXTENDING, 2)

    def test_ways_to_see_results(self):
        """Each command in the tables of docs/results.md exists: a script, a benchmark, or tests by name."""
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

    def run_commands(self, page, at_least):
        found = blocks(page, "sh")
        self.assertGreaterEqual(len(found), at_least)
        for block in found:
            # This test is one of test.sh's: there it only lists them. What is built is built.
            block = block.replace("scripts/test.sh ", "scripts/test.sh -N ")
            if "build.sh" in block or "test.sh" in block:
                if harness.BIN != harness.ROOT / "build" / "bin":
                    continue
            print(f"$ {block.strip().splitlines()[0]}")
            self.shell(block)

    def test_links(self):
        for page in (README, *sorted((harness.ROOT / "docs").glob("*.md"))):
            for target in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text()):
                self.assertTrue((page.parent / target).exists(), f"{page.name} links to {target}")

    def test_fields_of_a_runs_files(self):
        """Each field that a run writes is described, and each that is described is written."""
        out = self.folder / "out"
        again = {"name": "again", "files": [str(harness.CENSUS.parent / "adult.test.gz")]}
        sets = {"train.epochs": 1, "model.vocab_cache_size": 100, "data.eval_sets": [again],
                "train.plateau.patience": 1, "train.metrics": '["auc","logloss","ece"]'}
        summary = harness.train(harness.CENSUS, out, 1, 1, sets)
        metrics = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        written = {"summary.json": set(summary), "metrics.jsonl": set().union(*metrics)}
        for file, fields in written.items():
            table = OPERATIONS.read_text().split(f"\n`{file}`:\n")[1].lstrip().split("\n\n")[0]
            described = set()
            for row in table.splitlines()[2:]:
                described |= set(re.findall(r"`(\w+)`", row.split("|")[1]))
            # These stand there where a figure has no value alone.
            self.assertEqual(described, fields | {"eval_auc_undefined", "eval_undefined"}, file)

    def test_job_file(self):
        (text,) = blocks(README, "json")
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
