"""Tests copies of checkpoints in object storage, with a remote of rclone's that is a folder here."""
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import unittest

import harness


@unittest.skipUnless(shutil.which("rclone"), "there is no rclone (scripts/install_deps.sh --copies)")
class Copies(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        import tempfile
        cls.data = pathlib.Path(tempfile.mkdtemp(prefix="hdps_data_"))
        harness.generate(cls.data, rows=8192, eval_rows=512, vocabulary=2000, zipf=1.05, seed=3)
        cls.job = harness.write_job(cls.data / "job.json", harness.reference_job(cls.data, batch_size=128))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.data, ignore_errors=True)

    def setUp(self):
        super().setUp()
        self.there = self.folder / "there"
        self.there.mkdir()
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()
        config = self.folder / "rclone.conf"
        config.write_text(f"[st]\ntype = alias\nremote = {self.there}\n")
        self.env = {**os.environ, "RCLONE_CONFIG": str(config), "TMPDIR": str(self.temporary)}

    SETS = {"cluster.shards": 4, "train.max_steps": 60, "checkpoint.every_steps": 20, "checkpoint.delta_every_steps": 5,
            "checkpoint.keep": 1, "checkpoint.copy_to": "st:copies"}

    def command(self, out, sets=None, *extra):
        return [harness.program("hdps"), "train", f"--job={self.job}", f"--out={out}", "--servers=2",
                *harness.merged_settings({**self.SETS, **(sets or {})}), *extra]

    def train(self, out, sets=None, *extra, expect=0, env=None):
        done = harness.run(self.command(out, sets, *extra), env=env or self.env, expect=expect)
        return done.stdout + done.stderr

    def hdps(self, *words, expect=0, env=None):
        return harness.run([harness.program("hdps"), *words], env=env or self.env, expect=expect)

    def digest(self, path):
        return self.hdps("inspect", f"--checkpoint={path}", "--which=newest", "--digest").stdout.strip()

    def stand_in(self, script):
        """A program named rclone that is found before the real one, $RCLONE; returns the environment."""
        folder = self.folder / "bin"
        folder.mkdir(exist_ok=True)
        file = folder / "rclone"
        file.write_text(f"#!/usr/bin/env bash\nRCLONE={shutil.which('rclone')}\n{script}\n")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
        return {**self.env, "PATH": f"{folder}:{os.environ['PATH']}"}

    def nothing_left(self):
        self.assertEqual(list(self.temporary.iterdir()), [])

    def test_trained_copied_and_read_from_there(self):
        out = self.out("run")
        said = self.train(out)
        summary = harness.summary_of(out)
        self.assertIn("the copy of step 60 is at st:copies", said)
        names = sorted(one.name for one in (self.there / "copies").iterdir())
        self.assertEqual(names, sorted(one.name for one in (out / "checkpoint").glob("step_*")))
        for one in (out / "checkpoint").rglob("step_*/*"):
            if one.is_file():
                there = self.there / "copies" / one.relative_to(out / "checkpoint")
                self.assertEqual(there.read_bytes(), one.read_bytes(), one)
        # The folder is at hand, whatever becomes of the run's.
        shutil.rmtree(out)
        self.assertEqual(self.digest("st:copies"), summary["digest"])
        self.assertEqual(self.digest("st:copies/step_0000000060"), summary["digest"])
        fetched = self.hdps("predict", "--checkpoint=st:copies", f"--data={self.data}/eval.tsv")
        self.assertRegex(fetched.stderr, r"fetched [0-9.]+ \w+ from st:copies in [0-9.]+ s")
        local = self.hdps("predict", f"--checkpoint={self.there}/copies", f"--data={self.data}/eval.tsv")
        self.assertEqual(fetched.stdout, local.stdout)
        self.assertIn("largest difference 0\n", self.hdps("diff", "st:copies", self.there / "copies").stdout)
        self.assertIn(" 0 damaged", self.hdps("verify", "st:copies").stdout)
        self.hdps("evaluate", "--checkpoint=st:copies", f"--data={self.data}/eval.tsv")
        self.hdps("export", "--checkpoint=st:copies", f"--out={self.out('exported')}", "--format=safetensors")
        self.nothing_left()
        # A new run begins there, and its folder in --out goes again.
        begun = self.train(self.out("next"), {"checkpoint.copy_to": "", "train.max_steps": 1}, "--init=st:copies")
        self.assertIn("begins from", begun)
        self.assertFalse((self.out("next") / "fetched_init").exists())
        self.damaged()

    def damaged(self):
        """Files cut off there are named, each in turn; so is what is not there at all."""
        folder = self.there / "copies" / "step_0000000060"
        for file in sorted(folder.iterdir()):
            whole = file.read_bytes()
            file.write_bytes(whole[:len(whole) // 2])
            refused = self.hdps("inspect", "--checkpoint=st:copies", "--which=newest", expect=3).stderr
            self.assertIn("st:copies/step_0000000060", refused)
            if file.name != "manifest.json":
                self.assertIn(file.name, refused)
            file.write_bytes(whole)
        for path, what in (("st:nowhere", "directory not found"), ("nope:x", "didn't find section"),
                           ("st:copies/step_0000000001", "step 1"), ("st:", "no whole checkpoint")):
            self.assertIn(what, self.hdps("inspect", f"--checkpoint={path}", expect=2).stderr)
        # What exists here is not looked for elsewhere.
        local = self.folder / "st:copies"
        local.mkdir()
        done = harness.run([harness.program("hdps"), "inspect", "--checkpoint=st:copies"], env=self.env, expect=None,
                           cwd=self.folder)
        self.assertNotIn("fetch", done.stderr)
        self.assertNotEqual(done.returncode, 0)
        self.nothing_left()

    def test_killed_while_it_copies(self):
        """kill -9 in the middle of a copy: what is there is whole, and the run goes on to the same digest."""
        # The copy of the second checkpoint's files stands still after one of them.
        mark = self.folder / "mark"
        env = self.stand_in(f"""
if [[ "$*" == *--exclude=* && ! -e {mark} ]] && ls {self.there}/copies/*/manifest.json >/dev/null 2>&1; then
  "$RCLONE" copyto {self.job} "${{@: -1}}/half"
  echo "${{@: -1}}" >{mark}.tmp; mv {mark}.tmp {mark}; exec sleep 1000
fi
exec "$RCLONE" "$@" """)
        out = self.out("killed")
        process = subprocess.Popen(self.command(out, {"train.max_steps": 1000000, "train.epochs": 100000}), env=env,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            harness.wait_until(mark.exists, 60, "the copy of a second checkpoint")
            harness.wait_until(self.asleep, 20, "the copy that stands still")
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        harness.wait_until(lambda: not self.asleep(), 20, "the copying program ends with the scheduler")
        begun = int(mark.read_text().rsplit("_", 1)[1])
        self.assertTrue((self.there / "copies" / f"step_{begun:010}" / "half").exists())
        shown = self.hdps("inspect", "--checkpoint=st:copies", "--which=newest").stdout
        self.assertLess(int(re.search(r"clock +step (\d+)", shown)[1]), begun)
        # Goes on from what is here, copies it, and clears away what was begun and is old now.
        self.assertTrue((out / "checkpoint" / f"step_{begun:010}").exists(), "it stays while it is copied")
        last = max(int(one.name[5:]) for one in (out / "checkpoint").iterdir() if (one / "manifest.json").exists())
        self.train(out, {"train.max_steps": last + 5, "train.epochs": 100000}, "--resume=changed")
        self.assertEqual(self.digest("st:copies"), self.digest(out))
        self.assertEqual(sorted(one.name for one in (self.there / "copies").iterdir()),
                         sorted(one.name for one in (out / "checkpoint").glob("step_*")))
        # A run that is lost with its disk goes on from the copy.
        again = self.out("again")
        harness.run(["rclone", "copy", "st:copies", again / "checkpoint"], env=self.env)
        self.assertEqual(self.digest(again), self.digest(out))

    def asleep(self):
        return [one for one in pathlib.Path("/proc").iterdir() if one.name.isdigit() and self.sleeps(one)]

    def sleeps(self, process):
        try:
            return b"sleep\0001000" in (process / "cmdline").read_bytes() and \
                str(self.folder).encode() in (process / "environ").read_bytes()
        except OSError:
            return False

    def test_a_failure_is_a_warning(self):
        failed = self.folder / "failed"
        env = self.stand_in(f"""
if [[ "$*" == *copyto* && ! -e {failed} ]]; then
  touch {failed}; echo "2022/11/28 03:23:43 Failed to copyto: no route to the store" >&2; exit 5
fi
exec "$RCLONE" "$@" """)
        out = self.out("run")
        done = harness.run([harness.ROOT / "scripts" / "local_cluster.sh", *self.command(out)[2:]],
                           env={**env, "HDPS_BIN": str(harness.BIN)})
        said = done.stdout + done.stderr + (out / "log" / "scheduler.log").read_text()
        self.assertRegex(said, r"Failed to copyto: no route to the store; it is tried again (at the next save|in 1 s). "
                               "By hand: rclone copyto ")
        self.assertIn("the copy of step 60 is at st:copies", said)
        self.assertEqual(self.digest("st:copies"), harness.summary_of(out)["digest"])
        figures = (out / "figures.json").read_text()
        for name in ("hdps_copy_step", "hdps_copy_seconds", "hdps_copy_failures_total"):
            self.assertIn(name, figures)

    def test_mistakes_are_told_at_the_beginning(self):
        cases = (({"checkpoint.copy_to": "nope:x"}, "didn't find section in config file"),
                 ({"checkpoint.copy_to": "/tmp/copies"}, "is not a folder of rclone's, REMOTE:PATH"),
                 ({"checkpoint.copy_to": "copies"}, "checkpoint.copy_to"))
        for sets, wanted in cases:
            said = self.train(self.out("run"), sets, expect=2)
            self.assertIn(wanted, said)
            self.assertIn("copy_to", said)
            self.assertFalse((self.out("run") / "summary.json").exists())
        bare = self.folder / "bare"
        bare.mkdir()
        for name in ("setpriv", "nice"):
            (bare / name).symlink_to(shutil.which(name))
        said = self.train(self.out("run"), expect=2, env={**self.env, "PATH": str(bare)})
        self.assertIn("rclone is not installed: apt install rclone", said)
        # The place of another run.
        self.train(self.out("first"), {"train.max_steps": 5})
        self.assertRegex(self.train(self.out("run"), expect=2), "step_0000000005.*another run's")


if __name__ == "__main__":
    harness.main()
