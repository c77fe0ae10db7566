"""Tests bad networks, cut links, stopped processes, full and failing disks: the result is the same."""
import json
import pathlib
import re
import signal
import time
from datetime import datetime

import harness
from failing_cluster import FailingCluster

DEAD_AFTER_MS = 3000
# Its steps are made long, so that a fault meets the job while it trains.
SLOW = {"train.epochs": 1, "checkpoint.every_steps": 10, "cluster.dead_after_ms": DEAD_AFTER_MS,
        "cluster.heartbeat_ms": 100, "cluster.request_retry_ms": 100}
SLOWLY = "point=worker.step.computed:sleep=20ms@1.."


def seconds_of(line):
    return datetime.strptime(line.split()[0], "%Y-%m-%dT%H:%M:%S.%fZ").timestamp()


def gap(log, first, then):
    """Seconds between the first lines that hold these two texts."""
    at = [next((seconds_of(line) for line in log.splitlines()
                if text in line and re.match(r"\d{4}-", line)), None) for text in (first, then)]
    if None in at:
        raise AssertionError(f"'{first}' or '{then}' was not said\n{log[-4000:]}")
    return at[1] - at[0]


class Faults(harness.Case):
    digests = {}

    def undisturbed(self, sets):
        key = json.dumps(sets, sort_keys=True)
        if key not in Faults.digests:
            out = self.out(f"undisturbed_{len(Faults.digests)}")
            Faults.digests[key] = harness.train(harness.CENSUS, out, 2, 2, sets)["digest"]
        return Faults.digests[key]

    def cluster(self, name, sets, faults, **counts):
        return FailingCluster(harness.CENSUS, self.out(name), sets=sets, faults=faults, **counts)

    def slowly(self, faults):
        """These faults, and workers that take their time."""
        return {**{f"worker_{i}": [SLOWLY] for i in range(2)}, **faults}

    # ---- The network.

    def weather(self, name, sets, servers, workers, steps, seconds):
        """5 % dropped, 5 % repeated, 10 % overtaken, 10 % up to 200 ms late, at everybody."""
        members = (["scheduler"] + [f"server_{i}" for i in range(servers)] +
                   [f"worker_{i}" for i in range(workers)])
        faults = {member: [f"drop=5%,repeat=5%,reorder=10%,late=10%:0..200ms,seed={seed}"]
                  for seed, member in enumerate(members)}
        begin = time.monotonic()
        memory = []
        with self.cluster(name, sets, faults, servers=servers, workers=workers) as cluster:
            for part in (0.25, 0.9):
                cluster.wait_for(lambda: cluster.reported_step() >= part * steps, seconds,
                                 f"{part} of {steps} steps")
                memory.append(max(cluster.memory(f"server_{i}") for i in range(servers)) / 2**20)
            summary = cluster.finish(seconds)
            log = cluster.log()
        self.assertEqual(cluster.ends, [])
        self.assertEqual(summary["steps"], steps)
        frames, dropped, repeated, overtaken, late = (
            sum(map(int, counts)) for counts in zip(*re.findall(
                r"of (\d+) frames sent (\d+) were dropped, (\d+) repeated, (\d+) overtaken, (\d+) late",
                log)))
        requests, again = (sum(map(int, counts)) for counts in zip(*re.findall(
            r"(\d+) requests to servers, (\d+) sent again", log)))
        ledger = set(re.findall(r"(\d+) ledger entries", log))
        harness.figure(
            f"bad network: {summary['steps'] * workers * servers:,} pushes in "
            f"{time.monotonic() - begin:.0f} s, {requests:,} requests, {again:,} sent again; of "
            f"{frames:,} frames {dropped:,} dropped, {repeated:,} repeated, {overtaken:,} overtaken, "
            f"{late:,} up to 200 ms late; the ledgers of a server have {'/'.join(ledger)} entries at most; "
            f"a server took {memory[0]:.1f} MiB at a quarter of the steps and {memory[1]:.1f} near the end, "
            f"with {summary['row_bytes'] / servers / 2**20:.1f} of rows; digest {summary['digest']}")
        self.assertGreater(min(dropped, repeated, overtaken, late), 100)
        self.assertGreater(again, 10)
        return summary

    def test_a_bad_network_changes_nothing(self):
        sets = {"train.epochs": 1, "checkpoint.every_steps": 50, "cluster.request_retry_ms": 100}
        digest = self.undisturbed(sets)
        summary = self.weather("weather", sets, 2, 2, steps=128, seconds=300)
        self.assertEqual(summary["digest"], digest)

    @harness.at_night
    def test_a_hundred_thousand_pushes(self):
        # 8 servers get a push of each of 4 workers in each step. About three steps a second are made,
        # for nearly every one waits for a frame that is late or lost.
        sets = {"train.epochs": 1, "train.batch_size": 10, "checkpoint.every_steps": 1000,
                "cluster.request_retry_ms": 100}
        plain = harness.train(harness.CENSUS, self.out("plain"), 8, 4, sets, timeout=900)
        self.assertGreaterEqual(plain["steps"] * 8 * 4, 100_000)
        summary = self.weather("storm", sets, 8, 4, plain["steps"], seconds=3000)
        self.assertEqual(summary["digest"], plain["digest"])

    # ---- Links and standstills.

    def cut(self, name, rule, seconds):
        """A server is cut off once training flows; returns who was lost."""
        link = self.out(f"{name}.cut")
        faults = self.slowly({"server_1": [f"cut=all{rule}@while={link}"]})
        with self.cluster(name, SLOW, faults) as cluster:
            cluster.wait_for_steps(20)
            link.touch()
            cluster.wait_some(seconds)
            link.unlink()
            summary = cluster.finish(300)
            log = cluster.log()
        before = re.search(r"cut off from everybody.* after (\d+) frames sent and (\d+) received", log)
        self.assertIsNotNone(before, log[-3000:])
        self.assertGreater(min(map(int, before.groups())), 50, "no traffic before the cut")
        self.assertEqual(summary["digest"], self.undisturbed(SLOW))
        lost = re.findall(r"-scheduler (\w+ \d).* is lost: ", log)
        stood = re.findall(r"-scheduler .*it stood for ([\d.]+ s)", log)
        harness.figure(f"server cut off {rule or 'both ways'} for {seconds} s after "
                       f"{before[1]} frames: lost {lost or 'nobody'}, the job stood for "
                       f"{stood or 'no time'}, {summary['steps_again']} steps again, same digest")
        self.assertEqual(bool(lost), summary["failures_survived"] > 0)
        return lost

    def test_a_link_cut_for_a_second_loses_nobody(self):
        for name, rule in (("both", ""), ("in", ":in"), ("out", ":out")):
            self.assertEqual(self.cut(name, rule, 1), [])

    @harness.at_night
    def test_a_link_cut_for_half_a_minute(self):
        for name, rule in (("both", ""), ("in", ":in"), ("out", ":out")):
            self.cut(name, rule, 30)

    def stand_still(self, name, member, seconds):
        with self.cluster(name, SLOW, self.slowly({})) as cluster:
            cluster.wait_for_steps(20)
            before = cluster.reported_step()
            cluster.signal(member, signal.SIGSTOP)
            cluster.wait_some(seconds)
            cluster.signal(member, signal.SIGCONT)
            summary = cluster.finish(300)
            log = cluster.log()
        self.assertEqual(summary["digest"], self.undisturbed(SLOW))
        lost = re.findall(r"-scheduler (\w+ \d).* is lost: ", log)
        harness.figure(f"{member} stands still for {seconds} s at step {before}: lost "
                       f"{lost or 'nobody'}, {summary['failures_survived']} failures survived, "
                       f"{summary['steps_again']} steps again, same digest")
        self.assertEqual(bool(lost), summary["failures_survived"] > 0)
        return lost

    def test_standing_still_for_two_seconds_is_no_death(self):
        for member in ("server_1", "worker_1", "scheduler"):
            self.assertEqual(self.stand_still(member, member, 2), [])

    @harness.at_night
    def test_standing_still_for_twenty_seconds(self):
        for member in ("server_1", "worker_1"):
            self.assertGreaterEqual(len(self.stand_still(member, member, 20)), 1)
        self.assertEqual(self.stand_still("scheduler", "scheduler", 20), [])

    # ---- The disk.

    def assert_no_halves(self, out):
        for folder in (pathlib.Path(out) / "checkpoint").iterdir():
            self.assertTrue((folder / "manifest.json").exists(), f"{folder} is half a checkpoint")
            self.assertEqual([f.name for f in folder.iterdir() if f.name.endswith(".tmp")], [])

    def disk(self, name, member, rule, said, goes_on=None):
        """A disk of `member` that is bad from step 20 on until the scheduler has `said` so."""
        switch = self.out(f"{name}.bad")
        with self.cluster(name, SLOW, self.slowly({member: [f"{rule}@while={switch}"]})) as cluster:
            cluster.wait_for_steps(20)
            switch.touch()
            cluster.wait_for(lambda: said in cluster.log("scheduler"), 60, f"'{said}' is said")
            switch.unlink()
            if goes_on:
                cluster.wait_for(lambda: goes_on in cluster.log("scheduler"), 60, f"'{goes_on}'")
            summary = cluster.finish(200)
            log = cluster.log()
        self.assertEqual(summary["digest"], self.undisturbed(SLOW))
        self.assert_no_halves(cluster.out)
        return log

    def costs_checkpoints_alone(self, name, rule, fault, reason):
        log = self.disk(name, "server_1", rule, "could not be saved")
        self.assertIn(reason, log)
        self.assertIn("training goes on", log)
        lost = len(re.findall(r"-scheduler .*could not be saved", log))
        saved = len(re.findall(r"-scheduler saved ", log))
        told = gap(log, fault, "could not be saved")
        harness.figure(f"{rule} until that was said: {lost} checkpoints not saved, {saved} saved, "
                       f"said {told:.3f} s after, same digest, no half")
        self.assertGreater(saved, 2)
        self.assertLess(told, 1)

    def test_a_full_disk_costs_checkpoints_alone(self):
        self.costs_checkpoints_alone("full", "full=checkpoint/*", "the disk is full",
                                     "No space left on device")

    def test_a_failing_disk_costs_checkpoints_alone(self):
        self.costs_checkpoints_alone("failing", "failing=checkpoint/*:40", "the disk fails",
                                     "Input/output error")

    def undisturbed_but(self, name, faults):
        with self.cluster(name, SLOW, faults) as cluster:
            summary = cluster.finish(200)
            log = cluster.log()
        self.assertEqual(summary["digest"], self.undisturbed(SLOW))
        self.assert_no_halves(cluster.out)
        return log

    def test_a_write_torn_by_a_crash_is_no_checkpoint(self):
        log = self.undisturbed_but("torn", {"server_1": ["torn=checkpoint/*:4"]})
        self.assertIn("half a write, and the process dies", log)
        harness.figure("a server dies half-way through a write of a checkpoint: same digest, no half")

    def test_a_slow_disk_stops_nobody(self):
        log = self.undisturbed_but("slow", {"server_1": ["slow=checkpoint/*:5ms"]})
        self.assertNotIn("is lost", log)

    def test_what_cannot_be_removed_does_not_spoil_a_checkpoint(self):
        log = self.undisturbed_but("prune",
                                   {"scheduler": ["point=checkpoint.half_removed:error@1..3"]})
        self.assertIn("fails on purpose at checkpoint.half_removed", log)
        self.assertNotIn("could not be saved", log)

    def test_the_schedulers_state_on_a_full_disk(self):
        said = "its state is not written"
        log = self.disk("state", "scheduler", "full=scheduler.state*", said,
                        "state is written again")
        told = gap(log, "the disk is full", said)
        harness.figure(f"no space for the scheduler's state until that was said: {told:.3f} s after, "
                       "and written again by itself")
        self.assertLess(told, 1)

    def test_a_scheduler_that_dies_without_its_state(self):
        """What it wrote long ago must not be taken for where the job is."""
        switch = self.out("full")
        faults = self.slowly({"scheduler": [f"full=scheduler.state*@while={switch}"]})
        with self.cluster("stale", SLOW, faults) as cluster:
            cluster.wait_for_steps(20)
            switch.touch()
            cluster.wait_for_steps(60)
            self.assertIn("its state is not written", cluster.log("scheduler"))
            cluster.signal("scheduler", signal.SIGKILL)
            summary = cluster.finish()
            log = cluster.log("scheduler")
        self.assertNotIn("the scheduler is back", log)
        self.assertEqual(summary["digest"], self.undisturbed(SLOW))
        harness.figure(f"a scheduler dies while its state cannot be written: everybody begins again "
                       f"at step {summary['resumed_from']}, same digest")


if __name__ == "__main__":
    harness.main()
