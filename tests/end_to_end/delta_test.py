"""Tests checkpoints that hold only changes: resumed, damaged, inspected."""
import json
import pathlib
import random
import shutil
import signal
import subprocess

import harness


class Delta(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        import tempfile
        cls.data = pathlib.Path(tempfile.mkdtemp(prefix="hdps_data_"))
        harness.generate(cls.data, rows=20480, eval_rows=2048, vocabulary=5000, zipf=1.05, seed=3)
        cls.job = harness.write_job(cls.data / "job.json", harness.reference_job(cls.data, epochs=2))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.data, ignore_errors=True)

    def resume(self, out, sets, servers=1):
        """Goes on as a run that was killed would; returns summary and all that was said."""
        done = harness.run([harness.program("hdps"), "train", f"--job={self.job}", f"--out={out}",
                            f"--servers={servers}", *harness.merged_settings(sets)])
        return harness.summary_of(out), done.stdout + done.stderr

    def inspect(self, path, *flags):
        return harness.run([harness.program("hdps"), "inspect", "--which=newest",
                            f"--checkpoint={path}", *flags]).stdout

    def test_census_killed_and_resumed(self):
        """kill -9 after some deltas; resumed, the run ends with the digest of one without any."""
        epochs = {"train.epochs": 12}
        sets = {**epochs, "checkpoint.every_steps": 400, "checkpoint.delta_every_steps": 50}
        whole = harness.train(harness.CENSUS, self.out("whole"), 2, 2, epochs)
        out = self.out("killed")
        process = subprocess.Popen(
            [harness.program("hdps"), "train", f"--job={harness.CENSUS}", f"--out={out}", "--servers=2",
             "--workers=2", *harness.merged_settings(sets)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        harness.wait_until(lambda: (out / "checkpoint" / "step_0000000550" / "manifest.json").exists(),
                           120, "a delta")
        process.send_signal(signal.SIGKILL)
        process.wait()
        resumed = harness.train(harness.CENSUS, out, 3, 2, sets)
        harness.figure(f"killed, resumed from {resumed['resumed_from']}: {resumed['digest']}")
        self.assertEqual(resumed["resumed_from"] % 50, 0)
        self.assertNotEqual(resumed["resumed_from"] % 400, 0)
        self.assertEqual(resumed["digest"], whole["digest"])

    def test_each_file_damaged(self):
        """A chain of a full one and four deltas; each file of it in turn is damaged."""
        few = {"cluster.shards": 4, "train.batch_size": 128, "train.max_steps": 29}
        sets = {**few, "checkpoint.every_steps": 20, "checkpoint.delta_every_steps": 2,
                "checkpoint.keep": 9}
        self.sets = sets
        self.whole = harness.train(self.job, self.out("whole"), 2, 1, few)["digest"]
        sound = self.out("sound")
        with_deltas = harness.train(self.job, sound, 2, 1, sets)
        self.assertEqual(with_deltas["digest"], self.whole)
        shutil.rmtree(sound / "checkpoint" / "step_0000000029")  # As killed just before.
        shown = self.inspect(sound)
        for line in ("chain       step 20: all", "step 22: changes of", "step 28: changes of"):
            self.assertIn(line, shown)
        # What it holds is what a full one of the same step holds.
        stopped = harness.train(self.job, self.out("stopped"), 2, 1, {**few, "train.max_steps": 28})
        self.assertEqual(self.inspect(sound, "--digest").strip(), stopped["digest"])
        self.assertTrue(harness.run([harness.program("hdps"), "diff", "--which=newest", sound,
                                     self.out("stopped")]).stdout.endswith("largest difference 0\n"))
        # Scores from the one are those from the other.
        scores = [harness.run([harness.program("hdps"), "predict", "--which=newest",
                               f"--checkpoint={out}",
                               f"--data={self.data}/eval.tsv"]).stdout
                  for out in (sound, self.out("stopped"))]
        self.assertEqual(scores[0], scores[1])

        random.seed(7)
        sizes, damages = [], 0
        for step in (20, 22, 24, 26, 28):
            folder = sound / "checkpoint" / f"step_{step:010}"
            files = sorted(f.name for f in folder.iterdir())
            sizes.append(sum((folder / name).stat().st_size for name in files))
            resumed = random.choice(files)
            for name in files:
                for damage in (self.truncate, self.flip, pathlib.Path.unlink):
                    self.damaged(sound, folder / name, step, damage,
                                 resume=name == resumed and damage == self.flip)
                    damages += 1
        harness.figure(f"{damages} times a damaged file was named and the step before it found")
        harness.figure("bytes of the full one and its deltas: " + ", ".join(map(str, sizes)))

    @staticmethod
    def truncate(file):
        data = file.read_bytes()
        file.write_bytes(data[:-random.randrange(1, len(data))])

    @staticmethod
    def flip(file):
        data = bytearray(file.read_bytes())
        # Blanks between values of a manifest mean nothing.
        manifest = file.name == "manifest.json"
        at = data.index(b'"clock"') + 1 if manifest else random.randrange(len(data))
        data[at] ^= 1 << random.randrange(7)
        file.write_bytes(data)

    def damaged(self, sound, victim, step, damage, resume):
        out = self.out("damaged")
        shutil.copytree(sound, out)
        damage(out / victim.relative_to(sound))
        good = step - 2  # Of the chain before, where it is the full one.
        shown = self.inspect(out)
        self.assertIn(f"checkpoint  {out}/checkpoint/step_{good:010}", shown)
        refused = [line for line in shown.splitlines() if line.startswith("refused")]
        self.assertEqual(len(refused), (28 - good) // 2)
        for line in refused:
            self.assertIn(f"step_{step:010}/{victim.name}: ", line)
        if resume:
            summary, said = self.resume(out, self.sets)
            self.assertIn(f"step_{step:010}/{victim.name}: ", said)
            self.assertEqual(summary["resumed_from"], good)
            self.assertEqual(summary["digest"], self.whole)
            harness.figure(f"{victim.name} of step {step} damaged: resumed from {good}")
        shutil.rmtree(out)

    def test_erased_rows_stay_erased(self):
        """A table that loses rows, in memory and beyond it: what comes back is what was there."""
        model = json.loads(self.job.read_text())
        sets = {"checkpoint.delta_every_steps": 3, "checkpoint.every_steps": 20, "checkpoint.keep": 9}
        model["model"]["policy"] = {"evict_after_steps": 4, "admit_after": 2, "max_rows": 20000}
        job = harness.write_job(self.data / "evicting.json", model)
        whole = harness.train(job, self.out("whole"), 2, 2)
        self.assertGreater(whole["rows_evicted"], 0)
        out = self.out("erased")
        with_deltas = harness.train(job, out, 2, 2, sets)
        self.assertEqual(with_deltas["digest"], whole["digest"])
        for gone in ((40, 39), (36, 33, 30)):  # As killed behind what is left.
            for step in gone:
                shutil.rmtree(out / "checkpoint" / f"step_{step:010}")
            newest = sorted((out / "checkpoint").iterdir())[-1].name
            kept = self.out("kept")
            shutil.copytree(out, kept)
            resumed = harness.train(job, kept, 1, 2, sets)
            harness.figure(f"resumed from {newest}: {resumed['digest']}")
            self.assertEqual(resumed["digest"], whole["digest"])
            shutil.rmtree(kept)


if __name__ == "__main__":
    harness.main()
