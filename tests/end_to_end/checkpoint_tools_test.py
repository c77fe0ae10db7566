"""Tests the checkpoint commands of an operator: verify, diff and inspect."""
import re
import shutil

import harness

HDPS = harness.program("hdps")


class CheckpointTools(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        import pathlib, tempfile
        cls.runs = pathlib.Path(tempfile.mkdtemp(prefix="hdps_runs_"))
        few = {"train.max_steps": 40, "checkpoint.every_steps": 20, "checkpoint.delta_every_steps": 10,
               "checkpoint.keep": 9}
        harness.train(harness.CENSUS, cls.runs / "a", 2, 1, few)
        harness.train(harness.CENSUS, cls.runs / "b", 1, 1, {**few, "train.max_steps": 30})

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.runs, ignore_errors=True)

    def told(self, *command, expect=0):
        done = harness.run([HDPS, *command], expect=expect)
        return done.stdout + done.stderr

    def test_verify(self):
        """Every checkpoint is sound; one flipped byte or one missing file, and it says which is not."""
        said = self.told("verify", self.runs / "a")
        harness.figure(said.strip().splitlines()[0])
        self.assertEqual(len(re.findall(r"^sound .* MB/s, digest [0-9a-f]{32}$", said, re.MULTILINE)), 4)
        self.assertIn("4 sound, 0 damaged", said)
        run = self.out("damaged")
        shutil.copytree(self.runs / "a", run)
        folder = run / "checkpoint" / "step_0000000020"
        file = max((f for f in folder.iterdir() if f.suffix != ".json"), key=lambda f: f.stat().st_size)
        whole = file.read_bytes()
        for damage, change in (
                ("flipped", lambda: file.write_bytes(whole[:-100] + bytes([whole[-100] ^ 1]) + whole[-99:])),
                ("cut", lambda: file.write_bytes(whole[:-1])), ("gone", file.unlink)):
            change()
            said = self.told("verify", run, expect=3)
            harness.figure(f"{damage}: {said.strip().splitlines()[-1]}")
            self.assertRegex(said, rf"damaged  {folder}: .*{file.name}")
            # The delta on it is damaged with it, the others are not.
            self.assertIn("2 sound, 2 damaged", said)
        file.write_bytes(whole)
        self.assertIn("4 sound, 0 damaged", self.told("verify", run))
        self.assertIn("has no checkpoint", self.told("verify", self.out(""), expect=2))

    def test_a_damaged_one_is_passed_over_by_name(self):
        """Of a run whose best step is damaged another is taken, and each command says so once."""
        run = self.out("passed_over")
        shutil.copytree(self.runs / "a", run)
        best = int(re.search(r"^best +step (\d+)", self.told("inspect", f"--checkpoint={run}"), re.MULTILINE)[1])
        folder = run / "checkpoint" / f"step_{best:010}"
        file = max((f for f in folder.iterdir() if f.suffix != ".json"), key=lambda f: f.stat().st_size)
        whole = file.read_bytes()
        file.write_bytes(whole[:-100] + bytes([whole[-100] ^ 1]) + whole[-99:])
        warning = rf"^warning: {folder}: .*{file.name}.*; it is not whole, so it is passed over, and (\S+) is taken$"
        of_run, taken = f"--checkpoint={run}", set()
        for command in (("evaluate", of_run), ("predict", of_run, f"--out={self.out('probabilities')}",
                                               f"--data={harness.CENSUS.parent / 'adult.test.gz'}"),
                        ("export", of_run, "--format=safetensors", f"--out={self.out('exported')}"),
                        ("inspect", of_run, "--digest"), ("inspect", of_run, "--row=deep:education=Masters"),
                        ("diff", run, self.runs / "a")):
            said = re.findall(warning, self.told(*command), re.MULTILINE)
            self.assertEqual(len(said), 1, command)
            taken.update(said)
        self.assertEqual(len(taken), 1)
        said = self.told("inspect", of_run)
        self.assertIn(f"refused     {folder}: ", said)
        self.assertNotIn("warning: ", said)

    def test_diff(self):
        """The same step of two clusters is the same; ten steps on, rows were made and changed."""
        a, b = (self.runs / run / "checkpoint" / "step_0000000030" for run in "ab")
        same = self.told("diff", a, b)
        self.assertTrue(same.endswith("largest difference 0\n"), same)
        later = self.told("diff", "--which=newest", b, self.runs / "a")
        harness.figure("\n" + later)
        rows, only_a, only_b, differ = map(int, re.search(r"^deep +(\d+) +(\d+) +(\d+) +(\d+)", later,
                                                          re.MULTILINE).groups())
        self.assertEqual(only_a, 0)
        self.assertGreater(rows, only_b)
        self.assertGreater(differ, 0)
        self.assertGreater(float(later.split()[-1]), 0)
        self.assertIn("expected two", self.told("diff", a, expect=2))

    def test_row(self):
        """A row by the words of the data; its weights are those that differ."""
        a, b = (f"--checkpoint={self.runs / run}" for run in "ab")
        bachelors = "--row=deep:education=Bachelors"
        said = self.told("inspect", a, "--which=newest", bachelors)
        harness.figure("\n" + said)
        self.assertIn("it has been updated", said)
        weights = [float(x) for x in re.search(r"^weights +(.*)", said, re.MULTILINE)[1].split()]
        self.assertEqual(len(weights), 8)
        key = re.search(r"deep:(\d+)", said)[1]
        self.assertEqual(self.told("inspect", a, "--which=newest", f"--row=deep:{key}"), said)
        self.assertNotIn(said.split("weights")[1], self.told("inspect", b, "--which=newest", bachelors))
        self.assertIn("no step has updated it", self.told("inspect", a, "--row=deep:education=None"))
        with_rows = "features with rows are workclass, education, marital_status, "
        for row, *needles in (("dep:1", 'did you mean "deep"?', "with one of wide, deep, dense"),
                              ("deep", '"deep" has no key: write TABLE:KEY, such as deep:FEATURE=VALUE'),
                              ("dense", "such as dense:0"), ("dense:education=Masters", '"dense"', "write dense:0"),
                              ("deep:educatio=x", 'did you mean "education"?', with_rows),
                              ("deep:age=39", '"age" is a numeric column and has no rows; ' + with_rows),
                              ("deep:income=>50K", '"income" is a label column and has no rows'),
                              ("deep:fnlwgt=7", '"fnlwgt" is a skip column and has no rows'),
                              ("deep:x", "FEATURE=VALUE"), ("deep:age_range=3", "made of other columns")):
            said = self.told("inspect", a, f"--row={row}", expect=2)
            for needle in needles:
                self.assertIn(needle, said)


if __name__ == "__main__":
    harness.main()
