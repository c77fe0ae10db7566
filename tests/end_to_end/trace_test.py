"""Traces of a running job whose members have clocks of their own."""
import json
import signal
import statistics
import subprocess
import time
import unittest

import harness
from failing_cluster import FailingCluster

HDPS = harness.program("hdps")
ENDLESS = {"train.epochs": 100000, "train.batch_size": 512, "checkpoint.every_steps": 10}
# Members of the other half run in a time namespace whose monotonic clock is so far ahead.
AHEAD_S = 5
AHEAD = ["unshare", "-T", "--monotonic", str(AHEAD_S)]
OTHER_HALF = ("server_1", "worker_1")
# Times are printed with three digits behind the microsecond.
ROUNDED_US = 0.002


def can_shift_clocks():
    done = subprocess.run([*AHEAD, "true"], capture_output=True)
    return done.returncode == 0


class HalfAhead(FailingCluster):
    def before(self, name):
        return AHEAD if name in OTHER_HALF else []


class Timeline:
    """The events of a trace by member, track and request."""

    def __init__(self, path, shift_us=None):
        told = json.loads(path.read_text())
        self.other = told["otherData"]
        names, tracks, self.spans, self.arrows = {}, {}, [], []
        for event in told["traceEvents"]:
            if event["ph"] == "M":
                into = names if event["name"] == "process_name" else tracks
                key = event["pid"] if into is names else (event["pid"], event["tid"])
                into[key] = event["args"]["name"]
        for event in told["traceEvents"]:
            if event["ph"] == "M":
                continue
            member = names[event["pid"]].split(" (")[0]
            begin = event["ts"] + (shift_us or {}).get(member, 0)
            one = {"member": member, "track": tracks[event["pid"], event["tid"]], "name": event.get("name"),
                   "begin": begin, "end": begin + event.get("dur", 0), **event.get("args", {})}
            if event["ph"] == "X":
                self.spans.append(one)
            else:
                self.arrows.append({**one, "phase": event["ph"], "id": event["id"]})
        self.members = sorted({span["member"] for span in self.spans})

    def of(self, role):
        return [span for span in self.spans if span["member"].startswith(role)]

    def requests(self):
        """Pairs of a request and the spans that serve it."""
        serving = {}
        for span in self.of("server"):
            if "request" in span:
                serving.setdefault(span["request"], []).append(span)
        return [(span, serving.get(span["request"], [])) for span in self.of("worker") if "request" in span]

    def share_within(self, exact=False):
        """The share of requests that are served between their ends, as exactly as the file says it knows the clocks."""
        known = {name.split(" (")[0]: us for name, us in self.other["clock_uncertainty_us"].items()}
        served = [(span, answers) for span, answers in self.requests() if answers]
        within = 0
        for span, answers in served:
            off = [ROUNDED_US if exact else ROUNDED_US + known[span["member"]] + known[a["member"]] for a in answers]
            within += all(span["begin"] - us <= a["begin"] and a["end"] <= span["end"] + us
                          for a, us in zip(answers, off))
        return within / max(len(served), 1)

    def steps(self):
        return {(span["member"], span["step"]): span for span in self.of("worker") if span["track"] == "step" and
                span["name"] == "step"}

    def astray(self):
        """Spans that do not lie in their step: of compute in its own, of a server's work between its neighbours'."""
        steps, astray = self.steps(), []
        ahead = ("read", "dedup", "pull,", "push,", "exchange", "device")
        for span in self.of("worker"):
            step = steps.get((span["member"], span.get("step")))
            if span["track"].startswith(ahead) or step is None:
                continue
            if span["begin"] < step["begin"] - ROUNDED_US or span["end"] > step["end"] + ROUNDED_US:
                astray.append(span)
        for span in self.of("server"):
            if span["track"].startswith("save"):
                continue
            off = ROUNDED_US + 2 * max(self.other["clock_uncertainty_us"].values())
            before = [s["begin"] for (_, n), s in steps.items() if n == span["step"] - 1]
            after = [s["end"] for (_, n), s in steps.items() if n == span["step"] + 1]
            if (before and span["begin"] < min(before) - off) or (after and span["end"] > max(after) + off):
                astray.append(span)
        return astray


class Trace(harness.Case):
    def trace(self, cluster, out, steps, expect=0):
        return harness.run([HDPS, "trace", f"--scheduler={cluster.address}", f"--steps={steps}",
                            f"--out={self.out(out)}"], expect=expect)

    def begin(self, cluster, out, steps):
        """A trace that records by now."""
        asks = subprocess.Popen([HDPS, "trace", f"--scheduler={cluster.address}", f"--steps={steps}",
                                 f"--out={self.out(out)}"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)
        self.addCleanup(asks.kill)
        self.assertIn("records steps", asks.stderr.readline())
        return asks

    def cut_short(self, asks, out, why):
        """What there is is written, or it is said that nothing was recorded; both with the reason."""
        said, error = asks.communicate(timeout=120)
        self.assertIn(asks.returncode, (0, 3), error)
        self.assertRegex(said if asks.returncode == 0 else error, why)
        if asks.returncode == 0:
            self.assertTrue(Timeline(self.out(out)).members)

    def step_of(self, cluster):
        return json.loads(harness.run([HDPS, "status", f"--scheduler={cluster.address}", "--json"]).stdout)["step"]

    def speed(self, cluster, seconds=1.0):
        begin, first = time.monotonic(), self.step_of(cluster)
        harness.wait_until(lambda: time.monotonic() - begin > seconds, 60, "some steps")
        return (self.step_of(cluster) - first) / (time.monotonic() - begin)

    def judge(self, path, steps):
        line = Timeline(path)
        requests = line.requests()
        served = sum(bool(answers) for _, answers in requests)
        self.assertGreaterEqual(len(requests), 2 * 2 * steps, "each worker asks each server in each step")
        self.assertGreaterEqual(served, 0.99 * len(requests))
        self.assertGreaterEqual(line.share_within(exact=True), 0.99)
        self.assertEqual(line.astray(), [])
        self.assertEqual([len([1 for member, _ in line.steps() if member == worker]) for worker in
                          ("worker 0", "worker 1")], [steps, steps])
        ids = {phase: sorted(a["id"] for a in line.arrows if a["phase"] == phase) for phase in "sf"}
        self.assertEqual(ids["s"], ids["f"])
        self.assertEqual(len(ids["s"]), served)
        self.assertEqual(len(line.other["clock_uncertainty_us"]), 4)
        self.assertLess(max(line.other["clock_uncertainty_us"].values()), AHEAD_S * 1e6 / 100)
        first, end = line.other["steps"]
        self.assertEqual(end - first, steps)
        harness.figure(f"{served} of {len(requests)} requests of {steps} steps are served in the trace, "
                       f"{100 * line.share_within(exact=True):.1f} % of them within their arrows; clocks agree within "
                       f"{max(line.other['clock_uncertainty_us'].values()):.0f} us")
        return line

    def notices(self, path, members):
        """Without the correction of the clocks the same judgement fails."""
        shifted = Timeline(path, {member.replace("_", " "): AHEAD_S * 1e6 for member in members})
        self.assertLess(shifted.share_within(), 0.99)
        self.assertNotEqual(Timeline(path, {"server 1": AHEAD_S * 1e6}).astray(), [])

    @unittest.skipUnless(can_shift_clocks(), "this process may not make time namespaces")
    def test_members_with_other_clocks(self):
        with HalfAhead(harness.CENSUS, self.out("run"), sets=ENDLESS) as cluster:
            cluster.wait_for_steps()
            # A worker that is much faster than when it was asked hears of the first steps too late, and that is said.
            harness.wait_until(lambda: "missing" not in self.trace(cluster, "trace.json", 20).stdout, 120, "a whole trace")
            line = self.judge(self.out("trace.json"), 20)
            for name in ("pull", "push", "update"):
                self.assertIn(name, {span["track"] for span in line.of("server")})
            self.assertTrue(any(span["track"].startswith("save") for span in line.of("server")))
            self.notices(self.out("trace.json"), OTHER_HALF)
            ratios = []
            for _ in range(3):
                before = self.speed(cluster)
                self.trace(cluster, "turn.json", 5)
                ratios.append(self.speed(cluster) / max(before, 1e-9))
            harness.figure(f"steps after a trace are {statistics.median(ratios):.2f} times as fast as before it")

            asks = self.begin(cluster, "killed.json", 200)
            cluster.wait_some(0.6)
            cluster.signal("worker_0", signal.SIGKILL)
            cluster.processes["worker_0"].wait()
            cluster.look()
            self.cut_short(asks, "killed.json", "went back to a checkpoint|lost meanwhile")

            before = cluster.reported_step()
            cluster.wait_for(lambda: cluster.reported_step() > before, 120, "steps are made again")
            asks = self.begin(cluster, "ended.json", 200)
            cluster.wait_some(0.6)
            cluster.signal("scheduler", signal.SIGTERM)
            self.cut_short(asks, "ended.json", "the job has ended")
            cluster.finish()

    def test_mistakes(self):
        out = f"--out={self.out('t.json')}"
        nobody = f"--scheduler=tcp://127.0.0.1:{harness.free_port()}"
        mistakes = {
            "--steps=0": ([nobody, out, "--steps=0"], "--steps=0 is out of range; give a number from 1 to 200"),
            "--steps=201": ([nobody, out, "--steps=201"], "--steps=201 is out of range"),
            "--steps=-1": ([nobody, out, "--steps=-1"], "steps"),
            "--steps=many": ([nobody, out, "--steps=many"], "steps"),
            "no scheduler": ([out], "--scheduler"),
            "no address": (["--scheduler=nowhere", out], "nowhere"),
            "no file": ([nobody], "--out is missing; give the file for the trace"),
            "no folder": ([nobody, f"--out={self.out('none')}/t.json"], "cannot be written"),
            "a folder": ([nobody, f"--out={self.out('')}"], "--out="),
            "another flag": ([nobody, out, "--step=20"], "step"),
            "keys that are not there": ([nobody, out, f"--keys={self.out('keys')}"], "keys"),
        }
        for what, (flags, said) in mistakes.items():
            with self.subTest(what):
                done = harness.run([HDPS, "trace", *flags], expect=2)
                self.assertIn(said, done.stderr)
        harness.figure(f"{len(mistakes)} mistakes of hdps trace are refused with what to do")
        self.assertIn("nobody answers", harness.run([HDPS, "trace", nobody, out, "--steps=1"], expect=3).stderr)

    def test_in_one_process(self):
        path = self.out("train.json")
        harness.train(harness.CENSUS, self.out("run"), servers=2, workers=2, sets={"train.max_steps": 30},
                      extra=[f"--trace={path}", "--trace_steps=5"])
        line = Timeline(path)
        self.assertEqual(line.members, ["server 0", "server 1", "worker 0", "worker 1"])
        self.assertEqual(sorted({step for _, step in line.steps()}), list(range(5)))
        self.assertEqual(line.share_within(), 1)
        self.assertEqual(line.astray(), [])


if __name__ == "__main__":
    unittest.main()
