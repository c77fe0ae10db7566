"""Tests links in --out: folders may be on another disk, and no other link is followed. Devices and pipes
in place of files of a checkpoint or of data are refused at once."""
import os
import shutil

import harness

HDPS = harness.program("hdps")
FEW = {"train.max_steps": 40, "checkpoint.every_steps": 10, "checkpoint.keep": 1}
SECONDS = 60  # In which any command over a file that never ends has long said so.


class RunLinks(harness.Case):
    def setUp(self):
        super().setUp()
        self.theirs = self.out("theirs")
        self.theirs.mkdir()

    def precious(self, name):
        """A file of somebody else, which nobody may change."""
        file = self.theirs / name
        file.write_text("theirs\n")
        return file

    def assert_theirs(self, but=()):
        for file in self.theirs.iterdir():
            if file.is_file() and file.name not in but:
                self.assertEqual(file.read_text(), "theirs\n", file)

    def train(self, out, expect=0, sets=None):
        return harness.train(harness.CENSUS, out, sets={**FEW, **(sets or {})}, expect=expect)

    def test_a_run_and_its_checkpoints_on_another_disk(self):
        out, run, disk = self.out("out"), self.out("run"), self.out("disk")
        run.mkdir(), disk.mkdir()
        out.symlink_to(run)
        (run / "checkpoint").symlink_to(disk)
        (run / "log").symlink_to(self.theirs)
        self.train(out)
        self.assertEqual([folder.name for folder in disk.iterdir()], ["step_0000000040"])
        self.assertTrue((self.theirs / "train.log").is_file())
        harness.run([HDPS, "verify", out])

    def test_files_that_are_links_are_replaced_or_refused(self):
        out, replaced = self.out("run"), ("metrics.jsonl", "summary.json", "job_as_run.json", "job_as_given.json",
                                          "scheduler.state", "metrics.jsonl.tmp", "summary.json.tmp",
                                          "job_as_run.json.tmp", "scheduler.state.tmp")
        out.mkdir()
        (out / "log").mkdir()
        for name in replaced:
            (out / name).symlink_to(self.precious(name))
        os.link(self.precious("hard"), out / "lock")
        (out / "evaluation").symlink_to(self.theirs)
        self.train(out)
        self.assert_theirs()
        for name in replaced[:4]:
            self.assertFalse((out / name).is_symlink(), name)
        self.assertEqual(sorted(f.name for f in self.theirs.iterdir()), sorted([*replaced, "hard"]))
        for name in ("lock", "log/train.log"):
            (out / name).unlink(missing_ok=True)
            (out / name).symlink_to(self.precious("refused"))
            said = self.train(out, expect=2).stderr
            self.assertIn(f"{out / name}: it is a link", said)
            (out / name).unlink()
        self.assert_theirs()
        harness.figure(f"{len(replaced) + 1} files that are links replaced and 2 refused; none was written through")

    def test_daemons_write_through_no_link(self):
        out = self.out("run")
        for name in ("pid/scheduler.pid", "pid/server_0.pid", "summary.json", "metrics.jsonl"):
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            (out / name).symlink_to(self.precious(name.replace("/", "_")))
        harness.cluster(harness.CENSUS, out, sets=FEW)
        self.assert_theirs()
        (out / "log" / "server_0.log").unlink()
        (out / "log" / "server_0.log").symlink_to(self.precious("log"))
        done = harness.cluster(harness.CENSUS, out, sets=FEW, expect=2)
        self.assertIn("server_0.log: it is a link", done.stderr)
        self.assert_theirs()

    def test_steps_that_are_links(self):
        """Those that go, go as links; in place of one that is due the step is made."""
        out = self.out("run")
        self.train(out, sets={"train.max_steps": 10})
        old = out / "checkpoint" / "step_0000000010"
        moved = self.theirs / old.name
        shutil.move(old, moved)
        old.symlink_to(moved)
        due = out / "checkpoint" / "step_0000000030"
        (self.theirs / "due").mkdir()
        kept = {file.name: file.read_bytes() for file in moved.iterdir()}
        for name in kept:
            (self.theirs / "due" / name).write_text("theirs\n")
        due.symlink_to(self.theirs / "due")
        summary = self.train(out)
        self.assertEqual(summary["resumed_from"], 10, "a step is read through its link")
        self.assertEqual({file.name: file.read_bytes() for file in moved.iterdir()}, kept)
        self.assertFalse(old.is_symlink(), "it went, as checkpoint.keep says")
        for file in (self.theirs / "due").iterdir():
            self.assertEqual(file.read_text(), "theirs\n", file)
        self.assertEqual(summary["digest"], self.train(self.out("whole"))["digest"])

    def test_what_never_ends_is_refused(self):
        out, data = self.out("run"), self.out("data")
        self.train(out)
        folder = out / "checkpoint" / "step_0000000040"
        fifo = self.out("fifo")
        os.mkfifo(fifo)
        job, asked = f"--job={harness.CENSUS}", 0
        snapshot = next(file for file in folder.iterdir() if file.suffix != ".json")
        commands = (["inspect", f"--checkpoint={out}"], ["inspect", f"--checkpoint={folder}", "--digest"],
                    ["verify", out], ["predict", f"--checkpoint={out}"], ["evaluate", f"--checkpoint={out}"],
                    ["diff", out, folder], ["train", job, f"--out={out}"])
        for file in (snapshot, folder / "manifest.json"):
            aside = file.rename(self.out("aside"))
            for target, what in (("/dev/zero", "a device"), ("/dev/urandom", "a device"), (fifo, "a fifo")):
                file.symlink_to(target)
                for command in commands:
                    done = harness.run([HDPS, *command], timeout=SECONDS, expect=None)
                    self.assertIn(done.returncode, (2, 3), (command, done.stderr))
                    self.assertIn(f"{file}: it is {what}", done.stdout + done.stderr, command)
                    asked += 1
                file.unlink()
            aside.rename(file)
        for target, what in (("/dev/zero", "a device"), (fifo, "a fifo")):
            data.symlink_to(target)
            for command in (["predict", f"--checkpoint={out}", f"--data={data}"], ["prepare", data, f"--out={out}"],
                            ["train", job, f"--out={self.out('new')}", f'--set=data.train=["{data}"]'],
                            ["train", f"--job={data}", f"--out={self.out('new')}"],
                            ["train", f"--flagfile={data}"]):
                done = harness.run([HDPS, *command], timeout=SECONDS, expect=2)
                self.assertIn(f"{data}: it is {what}", done.stderr, command)
                asked += 1
            data.unlink()
        harness.run([HDPS, "verify", out])
        harness.figure(f"{asked} commands over files that never end: each said so and ended")


if __name__ == "__main__":
    harness.main()
