"""Kills a process at each failpoint once: the job ends with the result of an undisturbed run."""
import os
import re

import harness
from failing_cluster import FailingCluster

SETS = {"train.epochs": 1, "checkpoint.every_steps": 10, "cluster.dead_after_ms": 1000,
        "cluster.heartbeat_ms": 100}
ALLREDUCE = {"parallel.dense_exchange": "allreduce"}
# Passed many times; the crash comes when traffic has flowed.
OFTEN = {"server.pull.before_answer": 20, "server.push.judged": 20, "server.push.recorded": 20,
         "server.push.before_apply": 20, "server.push.applied": 20, "server.push.before_ack": 20,
         "server.step.ended": 20, "server.advance.taken": 20,
         "server.save.begun": 2, "server.save.taken": 2, "server.save.before_write": 2,
         "server.save.in_file": 2, "scheduler.save.taken": 2, "scheduler.save.in_files": 2,
         "snapshot.write.begun": 2, "snapshot.before_rename": 2, "snapshot.renamed": 2,
         "checkpoint.prepared": 2,
         "checkpoint.before_manifest": 2, "checkpoint.manifest_written": 2, "checkpoint.pruned": 2,
         "scheduler.state.before_write": 5, "scheduler.state.written": 5, "file.before_rename": 5,
         "scheduler.command.sent": 6, "scheduler.command.answered": 6, "scheduler.phase.save": 2,
         "scheduler.phase.train": 2, "worker.step.pulled": 20, "worker.step.computed": 20,
         "worker.step.reduced": 20, "worker.step.pushed": 20, "worker.step.acked": 20,
         "worker.step.ended": 20, "worker.train.begun": 2, "worker.command.begun": 3,
         "worker.command.answered": 2, "server.command.begun": 2, "server.command.before_answer": 2,
         "member.command.accepted": 2}
# Reached only while the job goes back to a checkpoint, so a server dies first.
AFTER_A_LOSS = {"server.load.begun", "server.load.read", "server.load.taken", "snapshot.read.begun",
                "scheduler.phase.load_servers", "scheduler.phase.load_workers",
                "scheduler.member.lost", "scheduler.job.went_back", "worker.load.taken",
                "worker.command.dropped"}
FIRST_LOSS = "point=server.push.before_ack:crash@70"
# Reached only when a worker is replaced in place: the process that has its place, or the scheduler, dies there.
IN_PLACE = {"scheduler.worker.replaced", "worker.stand.known"}
WORKER_LOSS = "point=worker.step.pushed:crash@35"
# Of allreduce alone.
OF_ALLREDUCE = {"worker.dense.before_store", "worker.group.formed", "scheduler.phase.store_dense",
                "scheduler.phase.move_dense"}
# Reached when a server is added.
OF_MOVES = {"scheduler.phase.quiet", "scheduler.phase.move_dense", "scheduler.phase.move_save",
            "scheduler.phase.move_servers", "scheduler.phase.move_workers"}
# Nothing is put on disk in the census job: they have a job of their own.
OF_SPILL = {"spill.write", "spill.read"}


def failpoints():
    """Name -> whether an error can come out of it."""
    lines = harness.run([harness.program("hdps-server"), "--faults=list"]).stdout.splitlines()
    return {line.split()[0]: line.endswith("(error)") for line in lines}


def member_of(point):
    """Who is made to crash there."""
    if point in ("worker.dense.before_init", "worker.dense.before_store"):
        return "worker_0"  # One speaks for all.
    role = point.split(".")[0]
    return {"server": "server_1", "snapshot": "server_1", "worker": "worker_1",
            "member": "server_1"}.get(role, "scheduler")


def faults_for(point):
    name = member_of(point)
    crash = f"point={point}:crash@{OFTEN.get(point, 1)}"
    if point == "scheduler.state.taken_over":
        return {"scheduler": ["point=scheduler.phase.save:crash@2", crash]}
    faults = {name: [crash]}
    if point == "worker.stand.known":
        faults = {"worker_1": [WORKER_LOSS, crash]}
    elif point in IN_PLACE:
        faults["worker_0"] = [WORKER_LOSS]
    if point in AFTER_A_LOSS:
        faults["server_0"] = [FIRST_LOSS]
    if point in OF_MOVES:
        faults["worker_0"] = ["point=worker.step.computed:sleep=20ms@1.."]
    return faults


class Failpoints(harness.Case):
    @staticmethod
    def add_a_server(cluster):
        cluster.wait_for_steps(20)
        harness.run([harness.program("hdps"), "scale", f"--scheduler={cluster.address}",
                     "--scale_servers=+1"])
        cluster.start_newcomer(f"server_{cluster.servers}")

    def test_a_crash_at_each_changes_nothing(self):
        digest = {}
        for name, sets in (("plain", {}), ("allreduce", ALLREDUCE)):
            digest[name] = harness.train(harness.CENSUS, self.out(name), 2, 2,
                                         {**SETS, **sets})["digest"]
        points = [point for point in failpoints() if point not in OF_SPILL]
        if only := os.environ.get("HDPS_FAILPOINTS"):
            points = [point for point in points if re.search(only, point)]
        chosen = harness.third_of(points, "failpoints")
        wrong, stood = [], []
        for point in chosen:
            kind = "allreduce" if point in OF_ALLREDUCE else "plain"
            sets = {**SETS, **(ALLREDUCE if kind == "allreduce" else {})}
            faults = faults_for(point)
            try:
                with FailingCluster(harness.CENSUS, self.out(point), 2, 2, sets, faults) as cluster:
                    if point in OF_MOVES:
                        self.add_a_server(cluster)
                    summary = cluster.finish()
                    log = cluster.log()
            except AssertionError as failure:
                wrong.append(f"{point}: {failure}")
                continue
            stood += [float(s) for s in re.findall(r"it stood for ([\d.]+) s", log)]
            if f"crash on purpose at {point}" not in log:
                wrong.append(f"{point} was never reached\n{cluster.describe()}")
            elif summary["digest"] != digest[kind]:
                wrong.append(f"{point}: digest {summary['digest']}\n{cluster.describe()}")
        harness.figure(f"failpoints: {len(chosen)} of {len(points)}, a crash at each: "
                       f"{len(chosen) - len(wrong)} ended with the digest of the undisturbed run; "
                       f"the job stood for {max(stood, default=0):.1f} s at most")
        self.assertFalse(wrong, "\n\n".join(wrong))
        self.assertLess(max(stood, default=0), 60)

    def test_a_crash_while_rows_go_to_disk_and_back(self):
        path = harness.spilling_job(self.folder, dead_after_ms=1000)
        digests = []
        for name, hit in (("none", 0), ("spill.write", 60), ("spill.read", 40)):
            faults = {"server_0": [f"point={name}:crash@{hit}"]} if hit else {}
            with FailingCluster(path, self.out(name), 1, 1, {}, faults) as cluster:
                summary = cluster.finish()
                self.assertGreater(summary["rows_on_disk"], 1000)
                self.assertEqual(f"crash on purpose at {name}" in cluster.log(), hit > 0)
            digests.append(summary["digest"])
        self.assertEqual(digests, digests[:1] * 3)
        harness.figure(f"a server dies while it writes or reads spilled rows, {summary['rows']:,} rows, "
                       "most on disk: same digest")


if __name__ == "__main__":
    harness.main()
