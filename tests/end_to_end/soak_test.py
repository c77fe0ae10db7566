"""Runs a job through minutes of random faults: it ends with the result of an undisturbed run, and processes
that survive use no more memory and descriptors than before.

HDPS_SOAK_SECONDS, at least 40, is the approximate length of a soak; HDPS_SOAK_SEED decides its faults.
"""
import os
import random
import re
import signal
import stat
import statistics
import subprocess
import time
from dataclasses import dataclass, field

import harness
from soak_watch import Watch

SECONDS = int(os.environ.get("HDPS_SOAK_SECONDS", "60"))
# Another one each day.
SEED = int(os.environ.get("HDPS_SOAK_SEED", time.gmtime().tm_yday))

# The settings of cluster.* are those of a user who has not thought about them. A worker waits in each
# step, so that traffic flows for as long as the soak lasts, and so that the same steps without faults
# take little time.
STEP_MS, STEPS_PER_SECOND = 20, 30
BATCH, STEPS_AN_EPOCH = 256, 128  # Of 32,561 examples.
STEPS_A_HEARTBEAT = 500 // STEP_MS  # cluster.heartbeat_ms is 500.
STEPS_TAKEN_UP_MAX = 8  # As cluster.pushes_in_flight_max, the steps of a worker on their way.
SETS = {"train.batch_size": BATCH, "train.epochs": 100000, "train.eval_each_epoch": False,
        "train.eval_every_steps": 500, "checkpoint.every_steps": 200, "checkpoint.delta_every_steps": 50}
# The launcher gives up a member that dies five times in a minute. A fault may cost a member's process
# once, also where that only stood still: who was given up ends, and is started again.
DEATHS_MAX, DEATHS_WITHIN_S = 3, 60
SERVERS, WORKERS = ["server_0", "server_1"], ["worker_0", "worker_1"]
ALL = [*SERVERS, *WORKERS, "scheduler"]

WRAPPER = """#!/usr/bin/env bash
# The program of the same name, with faults that come and go with files.
for flag in "$@"; do [[ "$flag" == --pid_file=* ]] && name=$(basename "${{flag#*=}}" .pid); done
at={folder}/$name
rules="cut=all@while=$at.cut,cut=all:in@while=$at.cut_in,cut=all:out@while=$at.cut_out,full=*@while=$at.full"
[[ "$name" == worker_* ]] && rules+=",point=worker.step.computed:sleep={step_ms}ms@1.."
exec {program} "$@" --faults="$rules"
"""
TEXTS = {"kill": "kill -9 of", "stop": "stopped:", "full": "disk full for", "cut": "cut off both ways:",
         "cut_in": "cut off inwards:", "cut_out": "cut off outwards:"}


@dataclass
class Fault:
    kind: str
    members: list
    seconds: float = 0  # It lasts; a kill does not.
    began: float = 0
    step: int = -1
    silence: float = 0  # The longest time without news of a step, until the next fault.
    events: list = field(default_factory=list)

    def __str__(self):
        whom = "all" if self.members == ALL else self.members[0]
        return f"{TEXTS[self.kind]} {whom}" + (f", {self.seconds:.1f} s" if self.seconds else "")

    def may_end(self, name):
        return name in self.members and self.kind != "full"


class Plan:
    """What happens next. Each kind comes once before any comes again, and the first is a kill."""

    def __init__(self, seed, seconds):
        self.chance = random.Random(f"soak {seed}")
        # They let three faults into a minute, as each step takes STEP_MS at least.
        self.pauses = min(10, seconds / 6), min(30, seconds / 6)
        self.deck, self.past = [], []

    def pause(self):
        return self.chance.uniform(*self.pauses)

    def next(self, now):
        while True:
            fault = self.draw()
            recent = [past for past in self.past if now - past.began < DEATHS_WITHIN_S]
            if all(sum(each.may_end(name) for each in [*recent, fault]) <= DEATHS_MAX for name in ALL):
                break
        fault.began = now
        self.past.append(fault)
        return fault

    def draw(self):
        if not self.deck:
            cards = [("kill", SERVERS), ("kill", WORKERS), ("kill", ["scheduler"]), ("kill", ALL),
                     ("stop", ALL), ("stop", ALL), ("cut", ALL), ("full", ALL)]
            self.deck = self.chance.sample(cards, len(cards))
            if not self.past:
                first = next(i for i, card in enumerate(self.deck) if card[0] == "kill")
                self.deck.append(self.deck.pop(first))  # The last one is drawn next.
        kind, whom = self.deck.pop()
        if kind == "kill":
            return Fault(kind, list(ALL) if whom is ALL else [self.chance.choice(whom)])
        if kind == "cut":
            kind = self.chance.choice(["cut", "cut_in", "cut_out"])
        return Fault(kind, [self.chance.choice(whom)], self.chance.uniform(1, 10))


class Soak:
    """One job under scripts/local_cluster.sh, and what is done to it."""

    def __init__(self, folder, seconds, sets):
        self.out, self.faults, self.said = folder / "run", folder / "faults", folder / "said"
        self.seconds, self.plan = seconds, Plan(SEED, seconds)
        self.deadline = 120 + 5 * seconds
        programs = folder / "bin"
        for made in (self.faults, programs):
            made.mkdir(parents=True)
        for role in ("scheduler", "server", "worker"):
            path = programs / f"hdps-{role}"
            path.write_text(WRAPPER.format(folder=self.faults, step_ms=STEP_MS,
                                           program=harness.program(path.name)))
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
        with open(self.said, "w") as said:
            self.process = subprocess.Popen(
                [str(harness.ROOT / "scripts" / "local_cluster.sh"), f"--job={harness.CENSUS}",
                 f"--out={self.out}", f"--servers={len(SERVERS)}", f"--workers={len(WORKERS)}",
                 "--threads=1", *harness.merged_settings(sets)],
                env={**os.environ, "HDPS_BIN": str(programs)}, stdin=subprocess.DEVNULL, stdout=said,
                stderr=said)
        self.watch = Watch(self.out, SERVERS, WORKERS, sets["cluster.replicas"])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for name in ALL:
            self.signal(name, signal.SIGCONT)
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()

    def signal(self, name, number):
        pid = self.watch.pid(name)
        try:
            if pid is not None:
                os.kill(pid, number)
        except ProcessLookupError:
            pass  # It has just ended.

    def begin(self, fault):
        fault.step = self.watch.step
        for name in fault.members:
            if fault.kind in ("kill", "stop"):
                self.signal(name, signal.SIGKILL if fault.kind == "kill" else signal.SIGSTOP)
            else:
                (self.faults / f"{name}.{fault.kind}").touch()

    def end(self, fault):
        for name in fault.members:
            if fault.kind == "stop":
                self.signal(name, signal.SIGCONT)
            elif fault.kind != "kill":
                (self.faults / f"{name}.{fault.kind}").unlink()

    def run(self):
        """Until the job ends. The first fault waits until steps are made, each until all are there."""
        under_way, next_at, undisturbed_since = None, None, 0
        while self.process.poll() is None:
            time.sleep(0.1)
            self.watch.look()
            now = self.watch.now()
            if now > self.deadline:
                raise AssertionError(f"the job has not ended after {now:.0f} s\n{self.describe()}")
            if under_way and now >= under_way.began + under_way.seconds:
                self.end(under_way)
                under_way, undisturbed_since = None, now
            if next_at is None and self.watch.step > 0:
                next_at = now + 3
            if not under_way:
                self.watch.note_quiet(undisturbed_since)
            # A machine that is slow today has no more faults to bear, only fewer steps between them.
            enough = now > self.seconds and len(self.plan.past) >= 3
            if under_way or enough or next_at is None or now < next_at or not self.watch.all_run():
                continue
            under_way = self.plan.next(now)
            self.begin(under_way)
            next_at = now + under_way.seconds + self.plan.pause()
        self.watch.look()
        past = self.plan.past
        for fault, then in zip(past, [*(fault.began for fault in past[1:]), self.watch.now()]):
            fault.silence = self.watch.longest_silence(fault.began, then)
            fault.events = self.watch.events_between(fault.began, then)

    def table(self):
        lines = [f"{'at':>8}  {'step':>6}  {'fault':33}  {'no news for':>11}  what the scheduler told"]
        lines += [f"{fault.began:6.1f} s  {fault.step:6}  {fault!s:33}  {fault.silence:9.1f} s  "
                  f"{', '.join(map(told_of, fault.events)) or '-'}" for fault in self.plan.past]
        return "\n".join(lines)

    def describe(self):
        told = [line for line in self.said.read_text().splitlines()
                if not re.match(r"saved |epoch |/|hdps-scheduler: job", line)]
        tails = [f"--- {path.name}\n" + "\n".join(
            [line for line in path.read_text().splitlines() if "on purpose at" not in line][-15:])
                 for path in sorted((self.out / "log").glob("*.log"))]
        return "\n".join([f"seed {SEED}", self.table(), *told, *tails])


def told_of(event):
    if event["event"] == "lost":
        return f"lost {event['member']}"
    if event["event"] == "went_back":
        return (f"back from {event['from_step']} to {event['step']}, it stood for "
                f"{event['stood_seconds']:.1f} s")
    if event["event"] == "replaced":
        return f"{event['member']} replaced in place after {event['after_seconds']:.1f} s"
    if event["event"] == "promoted":
        return f"{event['to']} goes on with group {event['group']}"
    return event["event"]


@harness.at_night
class SoakTest(harness.Case):
    def test_random_faults(self):
        """With rollback, and with copies of all rows."""
        for replicas in (0, 1):
            self.soak(replicas)

    def soak(self, replicas):
        steps = SECONDS * STEPS_PER_SECOND
        sets = {**SETS, "train.max_steps": steps, "cluster.replicas": replicas}
        undisturbed = harness.train(harness.CENSUS, self.out(f"undisturbed_{replicas}"), len(SERVERS),
                                    len(WORKERS), sets, timeout=120 + SECONDS)
        print(f"soak: HDPS_SOAK_SEED={SEED}, cluster.replicas {replicas}, {steps:,} steps", flush=True)
        with Soak(self.out(f"soak_{replicas}"), SECONDS, sets) as soak:
            soak.run()
        print(soak.table(), flush=True)
        self.assertEqual(soak.process.returncode, 0, soak.describe())
        self.assertEqual(harness.processes_with(str(soak.out)), [])
        summary = harness.summary_of(soak.out)
        self.tell(replicas, summary, soak)
        self.same_result(undisturbed, summary, soak)
        self.flat(soak)
        self.balanced(summary, soak)

    def same_result(self, undisturbed, summary, soak):
        for key in ("digest", "steps", "examples", "eval_auc", "eval_logloss"):
            self.assertEqual(summary[key], undisturbed[key], f"{key}\n{soak.describe()}")
        faults = soak.plan.past
        self.assertGreaterEqual(len(faults), 3, soak.describe())
        self.assertEqual(faults[0].kind, "kill")
        self.assertGreater(faults[0].step, 0, "no traffic before the first fault")

    def balanced(self, summary, soak):
        """Who was said to be lost is counted, and so is what was trained again."""
        said = soak.said.read_text()
        gone, losses = set(), 0
        for who, what in re.findall(r"(\w+ \d+ \(\S+\)) is (lost: |heard again)", said):
            # A scheduler that is killed when it has just told of a loss is followed by one that tells it again.
            losses += what == "lost: " and who not in gone
            (gone.add if what == "lost: " else gone.discard)(who)
        comebacks = said.count("the scheduler is back at step")
        self.assertEqual(summary["failures_survived"], losses + comebacks, soak.describe())
        self.assertGreater(summary["failures_survived"], 0)
        back = [event for _, event in soak.watch.events if event["event"] == "went_back"]
        # Events know the step of the last line of progress, the summary the last one that was heard of.
        self.assertGreaterEqual(summary["steps_again"], sum(e["from_step"] - e["step"] for e in back))
        # Steps are counted as of the worker that was furthest, examples as each worker told of them: up
        # to a heartbeat ago, or not at all of the steps that an answer after the loss tells. The last
        # batch of an epoch is smaller, by less than a whole one.
        went_back = said.count("the job goes on from step")
        # Who takes a place makes its own part of a few steps again.
        taken_up = said.count("was replaced in place") * STEPS_TAKEN_UP_MAX
        ends_of_epochs = summary["steps_again"] // STEPS_AN_EPOCH + went_back + taken_up
        not_told = went_back * STEPS_A_HEARTBEAT * BATCH // len(WORKERS)
        least = (summary["steps_again"] - ends_of_epochs) * BATCH - not_told
        self.assertGreaterEqual(summary["examples_again"], least)

    def flat(self, soak):
        leaks, judged, _ = soak.watch.leaks()
        self.assertEqual(leaks, [], soak.describe())
        self.assertGreater(judged, 0, "no process was looked at while all was quiet")
        for life, kib in soak.watch.growths():
            self.assertLess(kib, life.growth_kib_max(), f"{life.member} ({life.pid}): {life.memory[::20]}")

    def tell(self, replicas, summary, soak):
        leaks, judged, moments = soak.watch.leaks()
        kills = [fault for fault in soak.plan.past if fault.kind == "kill"]
        silences = [fault.silence for fault in kills]
        worst = {}
        for life, kib in soak.watch.growths():
            role = life.member.split("_")[0]
            worst[role] = max(worst.get(role, kib), kib)
        grown = ", ".join(f"a {role} {kib / 1024:+.1f} MiB" for role, kib in sorted(worst.items()))
        harness.figure(
            f"soak of {soak.watch.now():.0f} s, seed {SEED}, cluster.replicas {replicas}: "
            f"{len(soak.plan.past)} faults, {len(kills)} of them kills; digest {summary['digest']}, "
            f"{summary['failures_survived']} failures survived, {summary['steps_again']} of "
            f"{summary['steps']:,} steps trained again; no news of a step after a kill for "
            f"{statistics.median(silences):.1f} s (median) to {max(silences):.1f} s, of which up to a second "
            f"lies between two lines of progress; {len(leaks)} descriptors too many in {judged} processes at "
            f"{moments} quiet moments; memory of those that lived for a minute grew by at most: "
            f"{grown or 'none lived so long'}")


if __name__ == "__main__":
    harness.main()
