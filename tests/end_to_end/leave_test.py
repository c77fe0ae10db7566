"""Tells processes of a running job to leave alone: others take their places, and no step is trained twice."""
import json
import random
import signal
import statistics
import time

import harness

# So many of each role; scripts/night.sh asks for all.
LEAVES = harness.asked("HDPS_LEAVES", 2, 20, "leaves of a worker and of a server")
SETS = {"train.epochs": 8, "train.eval_each_epoch": False, "cluster.heartbeat_ms": 100,
        "cluster.dead_after_ms": 4000}
SLOWLY = "--faults=point=worker.step.computed:sleep=4ms@1.."
MEMBERS = ("server_0", "server_1", "worker_0", "worker_1")


class Supervised:
    """The processes of a job, each started again where it ends with 3, as a cluster's manifests say."""

    def __init__(self, case, name, sets=None, leave_s=25):
        self.case, self.out, self.leave_s = case, case.out(name), leave_s
        self.sets = harness.merged_settings({**SETS, **(sets or {})})
        self.port = harness.free_port()
        self.processes, self.ended = {}, []
        for process in ("scheduler", *MEMBERS):
            self.start(process)

    def start(self, name):
        role, _, rank = name.partition("_")
        flags = [f"--job={harness.CENSUS}", "--on_term=leave", f"--leave_s={self.leave_s}", *self.sets,
                 f"--log_file={self.out}/log/{name}.log"]
        if role == "scheduler":
            flags += [f"--out={self.out}", f"--listen=tcp://127.0.0.1:{self.port}", "--servers=2", "--workers=2"]
        else:
            flags += [f"--scheduler=tcp://127.0.0.1:{self.port}", f"--rank={rank}", "--threads=1"]
        if role == "worker":
            flags.append(SLOWLY)
        self.processes[name] = self.case.start(f"hdps-{role}", *flags)

    def supervise(self):
        """Starts again who has ended with 3; every other status than 0 is a failure."""
        for name, process in self.processes.items():
            if process.poll() is None or process.returncode == 0:
                continue
            said = process.communicate()[1]
            self.case.assertEqual(process.returncode, 3, f"{name}: {said[-2000:]}")
            self.ended.append((name, said))
            self.start(name)

    def wait(self, condition, seconds, what):
        def holds():
            self.supervise()
            return condition()
        harness.wait_until(holds, seconds, what)

    def events(self, field):
        path = self.out / "metrics.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [event for event in map(json.loads, (line for line in lines if line.endswith("}"))) if field in event]

    def step(self):
        return max((event["step"] for event in self.events("step")), default=-1)

    def trains_on(self):
        step = self.step()
        self.wait(lambda: self.step() > step, 60, "the job trains")

    def terminate(self, *names):
        for name in names:
            self.processes[name].send_signal(signal.SIGTERM)

    def end(self):
        self.wait(lambda: all(process.returncode == 0 for process in self.processes.values()), 120,
                  "the job is done")
        return harness.summary_of(self.out)


class Leaving(harness.DaemonsCase):
    plain = None

    def undisturbed(self):
        if Leaving.plain is None:
            Leaving.plain = harness.train(harness.CENSUS, self.out("plain"), 2, 2, SETS)
        return Leaving.plain

    def is_undisturbed(self, summary, leaves):
        self.assertEqual(summary["digest"], self.undisturbed()["digest"])
        self.assertEqual((summary["leaves"], summary["failures_survived"], summary["steps_again"]), (leaves, 0, 0))

    def leave(self, role, sets=None):
        """One run a leave, at a random moment of its training."""
        stood, took = [], []
        for i in range(LEAVES):
            chance = random.Random(f"{role} {i}")
            job = Supervised(self, f"{role}_{i}", sets)
            job.wait(lambda job=job, step=chance.randrange(5, 60): job.step() >= step, 60, "the job trains")
            name = f"{role}_{chance.randrange(2)}"
            began = time.monotonic()
            job.terminate(name)
            job.wait(lambda job=job: job.ended, 30, f"{name} leaves")
            took.append(time.monotonic() - began)
            self.assertEqual([who for who, _ in job.ended], [name])
            self.assertIn("left the job as it was told to; nothing is lost with it", job.ended[0][1])
            self.is_undisturbed(job.end(), 1)
            self.assertEqual(len(job.ended), 1)
            stood += [event["stood_seconds"] for event in job.events("stood_seconds")]
        text = f"stood {statistics.median(stood):.2f} s (median) to {max(stood):.2f} s" if stood else "never stood"
        harness.figure(f"SIGTERM to a {role} that leaves{' beside copies' if sets else ''}: {LEAVES} times, let go "
                       f"after {statistics.median(took):.2f} s (median) to {max(took):.2f} s; the job {text}; status 3, "
                       "no step trained again, digest of an undisturbed run")

    def test_a_worker_leaves(self):
        self.leave("worker")

    def test_a_server_leaves(self):
        self.leave("server")

    @harness.at_night
    def test_a_server_with_copies_leaves(self):
        self.leave("server", {"cluster.replicas": 1})

    def test_all_leave_at_once(self):
        job = Supervised(self, "all")
        job.wait(lambda: job.step() >= 20, 60, "the job trains")
        job.terminate(*MEMBERS, "scheduler")
        job.wait(lambda: len({name for name, _ in job.ended}) == 5, 60, "all have left")
        summary = job.end()
        self.assertEqual(len(job.ended), 5, job.ended)
        self.is_undisturbed(summary, 5)
        harness.figure(f"SIGTERM to all processes of a job at once: each ended with 3 and came again, "
                       f"{summary['steps']} steps, none trained again, digest of an undisturbed run")

    def test_without_a_scheduler_members_leave_in_time(self):
        """All go, and are started again when the last has gone: the job goes on from its state."""
        job = Supervised(self, "nobody", {"checkpoint.every_steps": 10}, leave_s=1)
        job.wait(lambda: job.step() >= 20, 60, "the job trains")
        job.terminate("scheduler")
        self.assertEqual(job.processes["scheduler"].wait(20), 3)
        self.assertTrue((job.out / "scheduler.state").exists())
        job.terminate(*MEMBERS)
        for name in MEMBERS:
            said = job.processes[name].communicate(timeout=30)[1]
            self.assertEqual(job.processes[name].returncode, 3, said)
            self.assertIn("left after 1 s, before it could hand over", said)
        for name in ("scheduler", *MEMBERS):
            job.start(name)
        self.assertEqual(job.end()["digest"], self.undisturbed()["digest"])

    def test_wrong_flags_are_named(self):
        for program in ("hdps-scheduler", "hdps-server", "hdps-worker"):
            for flag, said in (("--on_term=xyz", "--on_term=xyz is not known; give job"),
                               ("--leave_s=0", "--leave_s=0 is out of range; give 1 to 3600 seconds"),
                               ("--leave_s=3601", "--leave_s=3601 is out of range; give 1 to 3600 seconds")):
                done = harness.run([harness.program(program), f"--job={harness.CENSUS}", flag], expect=2)
                self.assertIn(said, done.stderr)


if __name__ == "__main__":
    harness.main()
