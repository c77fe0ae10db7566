"""Records asynchronous runs, some of them with kills, scaling and moves, and trains each again: the digests are equal."""
import os
import random
import re
import shutil
import statistics
import subprocess
import time

import harness
import launched

RUNS = harness.asked("HDPS_RUNS", 5, 30, "recorded runs")
FIRST = int(os.environ.get("HDPS_RUNS_SEED", 0))
PAIRS = int(os.environ.get("HDPS_PAIRS", 10))
HDPS = harness.program("hdps")
SETS = {**launched.SETS, "train.mode": "async", "train.epochs": 4, "checkpoint.every_steps": 40}
# What happens to a third of the runs, in turns: kills, and more members, whose rows move.
DISTURBED = ["a worker is killed", "servers are added", "a server is killed", "workers are added", "a server and a worker are killed"]
MODES = [{}, {}, {"train.mode": "ssp", "train.staleness_bound": 2}, {}, {"train.lookahead": 1}]


class Recorded(launched.Launched):
    """A job of 2 servers and 3 workers under scripts/local_cluster.sh that is recorded."""

    def __init__(self, out, sets, extra=()):
        self.sets, self.record = {**SETS, **sets}, out / "record"
        super().__init__(out, 2, 3, self.sets, ["--threads=1", *extra, f"--record={self.record}"])

    def add(self, case, role):
        """One more of `role`; the job goes on with it, or ends before it has joined."""
        listen = re.search(r"listens on (\S+),", (self.out / "log" / "scheduler.log").read_text()).group(1)
        harness.run([HDPS, "scale", f"--scheduler={listen}", f"--scale_{role}s=+1"], expect=None)
        flags = ["--listen=tcp://127.0.0.1:0", f"--record={self.record}"] if role == "server" else []
        late = subprocess.Popen([harness.program(f"hdps-{role}"), f"--job={harness.CENSUS}", f"--scheduler={listen}",
                                 "--threads=1", *harness.merged_settings(self.sets), *flags],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        case.addCleanup(late.wait)
        case.addCleanup(late.kill)
        harness.wait_until(lambda: self.events("rows_moved") or not self.training(), 60, "the members have changed")


class ReplayTest(harness.Case):
    def replay(self, record, out, sets, *more, expect=0, threads=2):
        return harness.run([HDPS, "replay", f"--record={record}", f"--job={harness.CENSUS}", f"--out={out}",
                            f"--threads={threads}", *harness.merged_settings(sets), *more], expect=expect)

    def recorded(self, name, sets=None, disturb=None):
        job = Recorded(self.out(name), sets or {})
        happened = disturb(job) if disturb else 0
        return job, job.end(self), happened

    def disturb(self, what, job, chance):
        """Does to the job what `what` says, twice; how often it came before the job's end."""
        happened = 0
        for _ in range(2):
            time.sleep(chance.uniform(0, 0.6))  # The moment, not a wait for anything.
            if "killed" in what:
                members = [f"{role}_{chance.randrange(2)}" for role in ("server", "worker") if role in what]
                happened += job.kill(*members)
            elif job.training() and not job.events("rows_moved"):
                job.add(self, "server" if "server" in what else "worker")
                happened += bool(job.events("rows_moved"))
        return happened

    def test_recorded_runs_are_trained_again(self):
        bytes_a_step, disturbed, again, segments = [], 0, 0, []
        for i in range(FIRST, FIRST + RUNS):
            # Of five runs in CI the second and the third.
            kind = (i // 3) % len(DISTURBED) + (0 if i % 3 == 1 else 1) if RUNS < 30 else (i // 3) % len(DISTURBED)
            what = DISTURBED[kind % len(DISTURBED)] if (i in (1, 2) if RUNS < 30 else i % 3 == 0) else ""
            sets, chance = MODES[i % len(MODES)], random.Random(i)
            job, summary, happened = self.recorded(
                f"run_{i}", sets, (lambda job: self.disturb(what, job, chance)) if what else None)
            disturbed += happened > 0
            again += summary["steps_again"]
            out = self.out(f"again_{i}")
            said = self.replay(job.record, out, job.sets, threads=1 + i % 3).stderr
            replayed = harness.summary_of(out)
            self.assertEqual(replayed["digest"], summary["digest"], f"run {i}, {what or 'undisturbed'}: {said[-2000:]}")
            self.assertEqual(replayed["steps"], summary["steps"])
            self.assertEqual(replayed["eval_auc"], summary["eval_auc"])
            self.assertIn(f"the digest is that of the recorded run, {summary['digest']}", said)
            segments.append(said.count("replays from step"))
            if not what:
                self.assertEqual(segments[-1], 1)
                size = sum(file.stat().st_size for file in job.record.iterdir())
                bytes_a_step.append(size / summary["steps"])
            for folder in (job.out, out):
                shutil.rmtree(folder)
        self.assertGreater(disturbed, 0)
        self.assertGreater(max(segments), 1)
        harness.figure(f"{RUNS} recorded runs over 2 servers and 3 workers, {disturbed} of them with a kill or more "
                       f"members ({again} steps thrown away): digests equal, {RUNS} of {RUNS}; the record "
                       f"{statistics.median(bytes_a_step):.1f} bytes a step of all workers "
                       f"({min(bytes_a_step):.1f} to {max(bytes_a_step):.1f})")

    def test_until_a_step_and_what_is_wrong(self):
        job, summary, _ = self.recorded("run")
        at = {}
        for name, threads in (("once", 1), ("twice", 3)):
            self.replay(job.record, self.out(name), job.sets, "--until=50", threads=threads)
            at[name] = harness.summary_of(self.out(name))
        self.assertEqual(at["once"]["digest"], at["twice"]["digest"])
        self.assertEqual(at["once"]["steps"], 50)
        self.assertNotEqual(at["once"]["digest"], summary["digest"])
        harness.run([HDPS, "inspect", f"--checkpoint={self.out('once')}"])
        harness.run([HDPS, "diff", self.out("once"), job.out], expect=None)

        def refused(text, record=job.record, sets=None, more=(), out="refused"):
            said = self.replay(record, self.out(out), sets or job.sets, *more, expect=2).stderr
            self.assertIn(text, said)
        refused("holds no record", record=self.out("nothing"))
        refused("the record is of another job", sets={**job.sets, "train.batch_size": 100})
        refused(f"the recorded run ended at step {summary['steps']}, and this one elsewhere", out="longer",
                sets={**job.sets, "train.epochs": 5})
        refused(f"the record ends at step {summary['steps']}", more=["--until=100000"])
        refused("holds a checkpoint", out="once")
        files = sorted(job.record.iterdir())
        for name, change, text in (
                ("damaged", lambda data: data[:100] + bytes([data[100] ^ 1]) + data[101:], "the record is damaged behind byte"),
                ("version", lambda data: data[:8] + b"\x09" + data[9:], "of version 9, this program reads 1"),
                ("other", lambda data: b"not a record" * 9, "no record of an order")):
            shutil.copytree(job.record, self.out(name))
            copy = self.out(name) / files[0].name
            copy.write_bytes(change(copy.read_bytes()))
            refused(text, record=self.out(name))
        said = harness.run([harness.ROOT / "scripts" / "local_cluster.sh", f"--job={harness.CENSUS}",
                            f"--out={self.out('mixed')}", f"--record={job.record}"], expect=2,
                           env={**os.environ, "HDPS_BIN": str(harness.BIN)}).stderr
        self.assertIn(f"--record={job.record} holds the record of another run; give a new folder", said)
        self.assertEqual(sorted(job.record.iterdir()), files)
        shutil.copytree(job.record, self.out("one"))
        (self.out("one") / files[0].name).unlink()
        refused("the record has no file of server", record=self.out("one"))

    def test_a_run_that_begins_from_another(self):
        harness.train(harness.CENSUS, self.out("before"), sets={"train.max_steps": 20})
        init = f"--init={self.out('before')}"
        job = Recorded(self.out("run"), {}, [init])
        summary = job.end(self)
        self.replay(job.record, self.out("again"), job.sets, init)
        self.assertEqual(harness.summary_of(self.out("again"))["digest"], summary["digest"])
        said = self.replay(job.record, self.out("without"), job.sets, expect=3).stderr
        self.assertIn("is not that of the recorded run", said)

    @harness.at_night
    def test_what_recording_costs(self):
        """Pairs of runs in turns, with a record and without: processor time of all members, and examples/s."""
        cpu, speed = [], []
        for i in range(PAIRS):
            took = {}
            for records in (i % 2 == 0, i % 2 == 1):
                out = self.out(f"pair_{i}_{records}")
                flags = [f"--record={out}/record"] if records else []
                process = subprocess.Popen(
                    [str(harness.ROOT / "scripts" / "local_cluster.sh"), f"--job={harness.CENSUS}", f"--out={out}",
                     "--servers=2", "--workers=3", "--threads=1", "--http=none", *flags,
                     *harness.merged_settings({"train.mode": "async", "train.epochs": 20, "train.eval_each_epoch": False})],
                    env={**os.environ, "HDPS_BIN": str(harness.BIN)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                self.assertEqual(process.returncode, 0)
                took[records] = (usage.ru_utime + usage.ru_stime, harness.summary_of(out)["examples_per_second"])
                shutil.rmtree(out)
            cpu.append(took[True][0] / took[False][0])
            speed.append(took[True][1] / took[False][1])
        harness.figure(f"recording, {PAIRS} pairs in turns on {os.cpu_count()} cores: {statistics.median(cpu):.4f} of the "
                       f"processor time ({min(cpu):.3f} to {max(cpu):.3f}), {statistics.median(speed):.4f} of the "
                       f"examples/s ({min(speed):.3f} to {max(speed):.3f})")
        self.assertLess(statistics.median(cpu), 1.05)


if __name__ == "__main__":
    harness.main()
