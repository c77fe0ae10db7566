"""Restarts members with ranks that others have by now: no job may end."""
import os
import re
import signal
import stat
import subprocess

import harness
from failing_cluster import FailingCluster

SETS = {"train.epochs": 3, "train.eval_each_epoch": False, "cluster.heartbeat_ms": 100,
        "cluster.dead_after_ms": 1500}
# Steps are made long, so that what dies does so while the job trains.
SLOWLY = {"HDPS_FAULTS": "point=worker.step.computed:sleep=10ms@1.."}
# The job must outlast whole restarts of processes, which may take seconds each.
SLOWER = {"HDPS_FAULTS": "point=worker.step.computed:sleep=80ms@1.."}

# A worker that has died has another job from then on: its second start is refused.
FORGETFUL = """#!/usr/bin/env bash
flags=()
[[ "$*" != *--rank=1* ]] || mkdir {mark} 2>/dev/null || flags=(--set=train.batch_size=7)
exec {program} "$@" "${{flags[@]}}"
"""


class Ranks(harness.Case):
    def start(self, name, servers, sets=None, env=SLOWLY):
        self.sets = {**SETS, **(sets or {})}
        cluster = FailingCluster(harness.CENSUS, self.out(name), servers, 2, self.sets, env=env)
        self.addCleanup(cluster.__exit__)
        cluster.wait_for_steps(10)
        return cluster

    def kill(self, cluster, *names):
        """Each is started again with its rank; one that gives up with 2 fails the test."""
        for name in names:
            cluster.signal(name, signal.SIGKILL)

    def until_noticed(self, cluster, pattern):
        cluster.wait_for(lambda: re.search(pattern, cluster.log("scheduler")), 60, pattern)

    def until_event(self, cluster, name, times):
        metrics = cluster.out / "metrics.jsonl"
        cluster.wait_for(lambda: metrics.read_text().count(f'"event":"{name}"') >= times, 60, name)

    def add(self, cluster, role):
        """A newcomer without --rank; it must end with 0."""
        process = subprocess.Popen(
            [harness.program(f"hdps-{role}"), f"--job={harness.CENSUS}", "--threads=1",
             f"--scheduler={cluster.address}", *harness.merged_settings(self.sets)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env=cluster.env)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def ends_well(self, process):
        said = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 0, said[-3000:])

    def goes_on(self, cluster, steps=5):
        reached = cluster.reported_step()
        cluster.wait_for(lambda: cluster.reported_step() >= reached + steps, 60, "steps are made")

    def ends_as_undisturbed(self, cluster, servers, what):
        summary = cluster.finish()
        plain = harness.train(harness.CENSUS, self.out("plain"), servers, 2, self.sets)
        for field in ("steps", "digest"):
            self.assertEqual(summary[field], plain[field], cluster.describe())
        harness.figure(f"{what}: status 0 of all, members lost: {summary['failures_survived']}, "
                       "the digest of an undisturbed job")
        return summary

    def test_with_copies_a_server_dies_twice_then_a_server_and_a_worker_at_once(self):
        cluster = self.start("copies", 3, {"cluster.replicas": 1})
        for turn in (1, 2):
            self.kill(cluster, "server_1")
            self.until_event(cluster, "promoted", turn)
            self.until_event(cluster, "scaled", turn)
        self.kill(cluster, "server_1", "worker_1")
        summary = self.ends_as_undisturbed(cluster, 3, "a server twice, then with a worker")
        self.assertEqual(summary["servers"], 3)

    def test_a_newcomer_without_a_rank_and_a_server_killed_meanwhile(self):
        cluster = self.start("scaled", 3)
        harness.run([harness.program("hdps"), "scale", f"--scheduler={cluster.address}",
                     "--scale_servers=+1"])
        newcomer = self.add(cluster, "server")
        self.kill(cluster, "server_1")
        summary = self.ends_as_undisturbed(cluster, 3, "a server killed beside a newcomer")
        self.ends_well(newcomer)
        self.assertEqual(summary["servers"], 4)

    def test_whose_place_a_newcomer_has_stands_by_and_takes_the_next(self):
        """It waits longer than a loss takes to be noticed, and the job goes on meanwhile."""
        cluster = self.start("taken", 2, env=SLOWER)
        cluster.signal("worker_1", signal.SIGSTOP)
        newcomer = self.add(cluster, "worker")
        self.until_noticed(cluster, r"worker 1 \(.*\) is lost: ")
        self.goes_on(cluster)
        self.kill(cluster, "worker_1")
        self.until_noticed(cluster, "stands by: rank 1 of the workers is taken")
        cluster.wait_some(3)
        self.goes_on(cluster)
        newcomer.kill()
        newcomer.wait()
        self.goes_on(cluster)
        self.ends_as_undisturbed(cluster, 2, "a worker whose rank is taken takes the next place")

    def forgetful_programs(self):
        programs = self.out("bin")
        programs.mkdir()
        for role in ("scheduler", "server", "worker"):
            (programs / f"hdps-{role}").symlink_to(harness.program(f"hdps-{role}"))
        worker = programs / "hdps-worker"
        worker.unlink()
        worker.write_text(FORGETFUL.format(mark=self.out("mark"), program=harness.program(worker.name)))
        worker.chmod(worker.stat().st_mode | stat.S_IXUSR)
        return programs

    def launcher(self, programs, out, *flags):
        sets = {**SETS, "cluster.on_worker_loss": "shrink", "cluster.replace_after_s": 4}
        with open(f"{out}.said", "w") as said:
            launcher = subprocess.Popen(
                [str(harness.ROOT / "scripts" / "local_cluster.sh"), f"--job={harness.CENSUS}",
                 f"--out={out}", "--threads=1", *harness.merged_settings(sets), *flags],
                stdin=subprocess.PIPE, stdout=said, stderr=said,
                env={**os.environ, **SLOWLY, "HDPS_BIN": str(programs)})
        self.addCleanup(launcher.stdin.close)
        self.addCleanup(launcher.wait)
        self.addCleanup(launcher.terminate)
        return launcher

    def a_worker_gives_up(self, lead, launchers):
        """Started again it has another job, so it is refused; all others go on without it."""
        metrics, at = self.out(lead) / "metrics.jsonl", list(launchers)[-1]
        harness.wait_until(lambda: metrics.exists() and '"step"' in metrics.read_text(), 60, "steps")
        os.kill(int((self.out(at) / "pid" / "worker_1.pid").read_text()), signal.SIGKILL)
        for name, launcher in launchers.items():
            said = self.folder / f"{name}.said"
            self.assertEqual(launcher.wait(120), 0, said.read_text()[-3000:])
        self.assertIn("worker_1 ended with status 2", said.read_text())
        summary = harness.summary_of(self.out(lead))
        self.assertEqual((summary["workers"], summary["failures_survived"]), (1, 1))

    def test_a_member_that_gives_up_does_not_end_the_job_of_its_launcher(self):
        run = self.launcher(self.forgetful_programs(), self.out("run"), "--workers=2")
        self.a_worker_gives_up("run", {"run": run})

    def test_a_member_that_gives_up_does_not_end_its_part_of_a_job(self):
        """The scheduler is on another machine, as scripts/cluster.sh has it."""
        programs, address = self.forgetful_programs(), f"tcp://127.0.0.1:{harness.free_port()}"
        lead = self.launcher(programs, self.out("lead"), "--workers=0", "--total-workers=2",
                             f"--listen={address}")
        part = self.launcher(programs, self.out("part"), "--node-rank=1", "--servers=0",
                             "--total-servers=1", "--workers=2", f"--scheduler={address}",
                             "--watched=600")
        self.a_worker_gives_up("lead", {"lead": lead, "part": part})


if __name__ == "__main__":
    harness.main()
