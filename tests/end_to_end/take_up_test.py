"""Kills workers of a running job: another process takes up the step in place, nobody goes back, and every example
counts once."""
import json
import os
import random
import re
import signal
import statistics
import time

import harness
from failing_cluster import FailingCluster
from failover_test import Launched, ReferenceCase

# So often each; the night asks for more.
KILLS = harness.asked("HDPS_KILLS", 5, 50, "kills of each kind")
FIRST = int(os.environ.get("HDPS_KILLS_SEED", 0))
# Without saves the job trains from its begin to its end, and nothing that comes back can be a checkpoint's.
SETS = {"train.epochs": 24, "train.eval_each_epoch": False, "checkpoint.every_steps": 0,
        "cluster.heartbeat_ms": 100, "cluster.dead_after_ms": 2000}
# A norm below that of every step of the job, so that each is clipped.
CLIPS = {"train.clip_norm": 0.01}
REPLACED = re.compile(r"(worker \d)\b.* was replaced in place after ([\d.]+) s; nobody goes back")


class TakeUpTest(ReferenceCase):
    def disturb(self, what, sets, same_digest, again_most=1):
        """KILLS runs, each with the kill of a worker at a random moment. A kill costs `again_most` steps at most."""
        sets = {**SETS, **sets}
        reference = self.reference(sets)
        kills, replaced, again = 0, [], []
        for i in range(FIRST, FIRST + KILLS):
            chance = random.Random(f"take up {what} {i}")
            job = Launched(self.out(f"{what.replace(' ', '_')}_{i}"), sets=sets)
            time.sleep(chance.uniform(0, 0.8))  # The moment of the kill, not a wait for anything.
            victim = chance.randrange(2)
            hit = job.kill(f"worker_{victim}")
            summary = job.end(self)
            said = (job.out / "log" / "scheduler.log").read_text()
            words = f"{what} {i}: {said[-3000:]}"
            self.assertTrue(hit, words)
            kills += 1
            told = REPLACED.findall(said)
            self.assertEqual([member for member, _ in told], [f"worker {victim}"], words)
            self.assertNotIn("the job goes on from", said, words)
            self.assertEqual(job.events("stood_seconds"), [], words)
            replaced.append(float(told[0][1]))
            again.append(summary["steps_again"])
            self.assertLessEqual(again[-1], again_most, words)
            self.assertEqual(summary["failures_survived"], 1, words)
            self.assertEqual(summary["examples"], reference["examples"], words)
            self.assertEqual(summary["steps"], reference["steps"], words)
            if same_digest:
                self.assertEqual(summary["digest"], reference["digest"], words)
                self.assertEqual(summary["train_logloss"], reference["train_logloss"], words)
            else:
                self.assertLess(abs(summary["eval_auc"] - reference["eval_auc"]), 0.02, words)
        harness.figure(f"{what}: {kills} workers killed, all replaced in place after {statistics.median(replaced):.2f} s "
                       f"(median) to {max(replaced):.2f} s; nobody went back; {sum(again)} steps made again; "
                       f"{'the digest' if same_digest else 'the examples'} of the undisturbed run each time")

    def test_sync(self):
        for copies in (0, 1):
            self.disturb(f"sync, {copies} copies", {"cluster.replicas": copies}, True)

    def test_sync_with_rows_ahead_in_sixteen_bits(self):
        self.disturb("sync, rows two steps ahead in bf16", {"train.lookahead": 2, "parallel.wire": "bf16"}, True)

    def test_sync_with_a_clipped_norm(self):
        """Servers hold a step until a worker that has the norm of all gradients announces it."""
        for copies in (0, 1):
            self.disturb(f"sync under clip_norm, {copies} copies", {**CLIPS, "cluster.replicas": copies}, True)

    def test_allreduce(self):
        """The others make their step again too, because its sums are lost."""
        for copies in (0, 1):
            self.disturb(f"allreduce, {copies} copies", {"parallel.dense_exchange": "allreduce",
                                                         "cluster.replicas": copies}, True, 2 * 2)

    def test_allreduce_with_rows_ahead_in_sixteen_bits(self):
        self.disturb("allreduce, rows two steps ahead in bf16",
                     {"parallel.dense_exchange": "allreduce", "train.lookahead": 2, "parallel.wire": "bf16"}, True, 2 * 2)

    def test_async(self):
        for copies in (0, 1):
            self.disturb(f"async, {copies} copies", {"train.mode": "async", "cluster.replicas": copies}, False)

    def test_ssp(self):
        for copies in (0, 1):
            self.disturb(f"ssp, {copies} copies", {"train.mode": "ssp", "train.staleness_bound": 2,
                                                   "cluster.replicas": copies}, False)


class PointsTest(harness.Case):
    """Workers die at known points: of a step, and then others at points of the way in place."""
    SETS = {**SETS, "train.epochs": 2, "parallel.dense_exchange": "allreduce"}
    IN_STEP = ("pulled", "computed", "pushed", "acked", "reduced", "ended")
    CLIPPED = {**SETS, "parallel.dense_exchange": "servers", **CLIPS}

    def end(self, name, faults, sets=None, workers=2):
        with FailingCluster(harness.CENSUS, self.out(name), 2, workers, sets or self.SETS, faults) as cluster:
            summary, log = cluster.finish(), cluster.log()
        for point in [fault for of_one in faults.values() for fault in of_one]:
            self.assertIn(f"crash on purpose at {point.split('=')[1].split(':')[0]}", log)
        self.assertEqual(summary["digest"], self.digest, f"{name}: {log[-3000:]}")
        return log

    def test_allreduce_at_each_point_of_a_step(self):
        self.digest = harness.train(harness.CENSUS, self.out("plain"), 2, 2, self.SETS)["digest"]
        chosen = harness.third_of([(point, rank) for point in self.IN_STEP for rank in (0, 1)], "points of a step")
        for point, rank in chosen:
            log = self.end(f"{point}_{rank}", {f"worker_{rank}": [f"point=worker.step.{point}:crash@{30 + rank}"]})
            self.assertIn("nobody goes back", log)
            self.assertNotIn("the job goes on from", log)
        harness.figure(f"allreduce, a crash at each of {len(chosen)} points of a step of a worker: replaced in place, "
                       "with the digest of the undisturbed run")

    def test_a_clipped_norm_at_each_point_of_a_step(self):
        """Also where every worker dies with all pushed and nothing announced: the norm is then at the servers alone."""
        cases = [(point, workers) for point in ("pulled", "pushed", "acked", "ended") for workers in (1, 2)]
        in_place = 0
        for workers in (1, 2):
            self.digest = harness.train(harness.CENSUS, self.out(f"plain_{workers}"), 2, workers, self.CLIPPED)["digest"]
            free = harness.train(harness.CENSUS, self.out(f"free_{workers}"), 2, workers,
                                 {**self.CLIPPED, "train.clip_norm": 0})["digest"]
            self.assertNotEqual(self.digest, free)
            for point in [point for point, of in cases if of == workers]:
                faults = {f"worker_{rank}": [f"point=worker.step.{point}:crash@30"] for rank in range(workers)}
                log = self.end(f"{point}_{workers}", faults, self.CLIPPED, workers)
                in_place += "the job goes on from" not in log and "nobody goes back" in log
        self.assertEqual(in_place, len(cases))
        harness.figure(f"clip_norm in sync, all of one or two workers crash at a point of the same step: {in_place} of "
                       f"{len(cases)} replaced in place, with the digest of the undisturbed run")

    def test_allreduce_where_orders_begin_and_end(self):
        self.digest = harness.train(harness.CENSUS, self.out("plain"), 2, 2, self.SETS)["digest"]
        points = ("train.begun:crash@1", "train.begun:crash@2", "command.answered:crash@2", "command.begun:crash@2")
        chosen = harness.third_of([(point, rank) for point in points for rank in (0, 1)], "points of an order")
        in_place = 0
        for point, rank in chosen:
            log = self.end(f"{point.split(':')[0]}_{point[-1]}_{rank}", {f"worker_{rank}": [f"point=worker.{point}"]})
            in_place += "the job goes on from" not in log
        harness.figure(f"allreduce, a crash where an order begins or ends: {len(chosen)} of {len(chosen)} with the digest "
                       f"of the undisturbed run, {in_place} without a way back")

    def test_a_second_crash_on_the_way(self):
        self.digest = harness.train(harness.CENSUS, self.out("plain"), 2, 2, self.SETS)["digest"]
        first = "point=worker.step.computed:crash@30"
        in_place = 0
        chosen = harness.third_of(
            [("worker_0", "worker.group.formed:crash@2"), ("worker_1", "worker.stand.known:crash@1"),
             ("worker_0", "worker.stand.known:crash@1"), ("scheduler", "scheduler.worker.replaced:crash@1"),
             ("server_1", "server.advance.taken:crash@62")], "second crashes")
        for who, point in chosen:
            faults = {"worker_1": [first]}
            faults.setdefault(who, []).append(f"point={point}")
            in_place += "the job goes on from" not in self.end(f"{who}_{point.split(':')[0]}", faults)
        harness.figure(f"allreduce, a second crash on the way: {len(chosen)} of {len(chosen)} with the digest of the "
                       f"undisturbed run, {in_place} without a way back")


class LateTest(harness.DaemonsCase):
    def test_who_comes_late_takes_up_the_step_too(self):
        """While the place is empty the others wait for longer than dead_after_ms and replace_after_s, three seconds here."""
        sets = {**SETS, "train.epochs": 2, "parallel.dense_exchange": "allreduce", "cluster.replace_after_s": 1}
        digest = harness.train(harness.CENSUS, self.out("plain"), 2, 2, sets)["digest"]
        out, address, job = self.out("run"), f"tcp://127.0.0.1:{harness.free_port()}", f"--job={harness.CENSUS}"
        words = harness.merged_settings(sets)
        self.start("hdps-scheduler", job, f"--listen={address}", f"--out={out}", "--servers=2", "--workers=2", *words)
        for _ in range(2):
            self.start("hdps-server", job, f"--scheduler={address}", "--listen=tcp://127.0.0.1:0", *words)

        def worker(rank, *flags):
            return self.start("hdps-worker", job, f"--scheduler={address}", f"--rank={rank}", *flags, *words)
        survivor, lost = worker(0), worker(1, "--faults=point=worker.step.computed:crash@30")
        lost.wait(60)
        died = time.monotonic()  # What comes next is about how long the others wait.
        harness.wait_until(lambda: survivor.poll() is not None or time.monotonic() > died + 8, 60, "eight seconds")
        self.assertIsNone(survivor.poll())
        worker(1)
        harness.wait_until(lambda: all(process.poll() is not None for process in self.running), 60, "the end")
        self.assertEqual([process.poll() for process in self.running if process is not lost], [0] * 5)
        summary = harness.summary_of(out)
        self.assertEqual(summary["digest"], digest)
        self.assertNotIn('"went_back"', (out / "metrics.jsonl").read_text())
        harness.figure("allreduce, another process eight seconds after the loss: replaced in place, with the digest of "
                       "the undisturbed run")


class OthersTest(harness.DaemonsCase):
    def clocks(self, address):
        told = json.loads(harness.run([harness.program("hdps"), "status", f"--scheduler={address}", "--json"]).stdout)
        return {member["name"].split(" (")[0]: member["step"] for member in told["members"]
                if member["name"].startswith("worker")}

    def steps_a_second(self, address, members, seconds):
        begin, before = time.monotonic(), self.clocks(address)
        time.sleep(seconds)  # The span over which steps are counted.
        after, end = self.clocks(address), time.monotonic()
        return sum(after[m] - before[m] for m in members) / (end - begin)

    def test_in_async_the_others_train_on(self):
        """The replacement comes late; until then the others lose no speed, and it takes up its step then.

        All workers meet at the end of an epoch. So one has to last for longer than all of this: a thousand steps, each
        of which stands for a while."""
        out, port = self.out("run"), harness.free_port()
        address = f"127.0.0.1:{port}"
        sets = harness.merged_settings({**SETS, "train.epochs": 100000, "train.mode": "async",
                                        "train.batch_size": 32, "cluster.dead_after_ms": 1000})
        job = f"--job={harness.CENSUS}"
        self.start("hdps-scheduler", job, f"--listen=tcp://{address}", f"--out={out}", "--servers=2", "--workers=3", *sets)

        def worker(rank):
            return self.start("hdps-worker", job, f"--scheduler=tcp://{address}", f"--rank={rank}",
                              "--faults=point=worker.step.computed:sleep=10ms@1..", *sets)
        for _ in range(2):
            self.start("hdps-server", job, f"--scheduler=tcp://{address}", "--listen=tcp://127.0.0.1:0", *sets)
        workers = [worker(rank) for rank in range(3)]
        harness.wait_until(lambda: (out / "metrics.jsonl").exists() and
                           '"step"' in (out / "metrics.jsonl").read_text(), 60, "the first steps")
        others = ["worker 0", "worker 1"]
        before = self.steps_a_second(address, others, 2)
        workers[2].send_signal(signal.SIGKILL)
        during = self.steps_a_second(address, others, 2)
        workers[2] = worker(2)
        harness.wait_until(lambda: '"replaced"' in (out / "metrics.jsonl").read_text(), 60, "the replacement")
        stood = self.clocks(address)
        harness.wait_until(lambda: self.clocks(address)["worker 2"] > stood["worker 2"], 60, "its steps")
        text = (out / "metrics.jsonl").read_text()
        self.assertNotIn('"went_back"', text)
        harness.figure(f"async, while one of three workers is dead: the others make {during:.0f} steps/s, before "
                       f"{before:.0f}: {during / before:.2f} times")
        self.assertGreater(during / before, 0.9)


if __name__ == "__main__":
    harness.main()
