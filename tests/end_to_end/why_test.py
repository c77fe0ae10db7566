"""Hangs running jobs on purpose: hdps why must name the member at fault."""
import json
import re
import signal
import subprocess
import time

import harness
from failing_cluster import FailingCluster
from faults_test import SLOWLY

HDPS = harness.program("hdps")
# Long waits are no losses here; an epoch has eight steps, and is evaluated.
PATIENT = {"train.epochs": 100000, "train.batch_size": 4096, "cluster.dead_after_ms": 120000,
           "cluster.heartbeat_ms": 100, "cluster.request_retry_ms": 100}


class LateCluster(FailingCluster):
    """Members called `late` are not started with the others."""

    def __init__(self, *args, late=(), **kwargs):
        self.late = set(late)
        super().__init__(*args, **kwargs)

    def start(self, name):
        if name not in self.late:
            super().start(name)


class Why(harness.Case):
    explained, answers, on_the_page = [], [], []

    def ask(self, address, expect=0):
        """The answer as JSON, or what was said where status 3 is expected."""
        begin = time.monotonic()
        done = harness.run([HDPS, "why", f"--scheduler={address}", "--json"], expect=expect)
        Why.answers.append(time.monotonic() - begin)
        return json.loads(done.stdout) if expect == 0 else done.stderr

    def until(self, cluster, fits, what, seconds=120):
        """Asks until the answer fits; nobody who has ended is started again meanwhile."""
        answer, seen = {}, []

        def asked():
            answer.update(self.ask(cluster.address))
            seen.append(answer["explanation"])
            return fits(answer)
        try:
            harness.wait_until(asked, seconds, what)
        except AssertionError as late:
            said = "\n".join(seen[:8])
            raise AssertionError(f"{late}\nit said\n{said}\nlast answer: {json.dumps(answer, indent=1)}\n"
                                 f"{cluster.describe()}") from None
        return answer

    def expect(self, cluster, hang, kind, causes, said):
        """This hang is explained: its kind (of several), who is at fault (None: either side), and the words."""
        begin = time.monotonic()
        answer = self.until(cluster, lambda a: a["kind"] in kind.split("|") and causes in (None, a["causes"]) and
                            re.search(said, a["explanation"]) and self.page_says(cluster, a["explanation"]), hang)
        Why.on_the_page.append(hang)
        Why.explained.append(hang)
        harness.figure(f"{hang}, explained {time.monotonic() - begin:.1f} s after: "
                       f"{answer['explanation']}")
        return answer

    def page_says(self, cluster, sentence):
        """The job's page has this sentence; only its numbers are those of a moment later."""
        panels = self.panels(cluster)
        return re.sub(r"[\d.]+ (s|min|h)\b", "T", panels["health"]["sentence"]) == re.sub(r"[\d.]+ (s|min|h)\b", "T", sentence)

    def panels(self, cluster):
        told = harness.run([HDPS, "status", f"--scheduler={cluster.address}", "--json"]).stdout
        return json.loads(told)["panels"]

    def moves(self, cluster):
        """Until steps are made again: the next hang is one of its own. Asked of status, which takes no second."""
        def step():
            return json.loads(harness.run([HDPS, "status", f"--scheduler={cluster.address}", "--json"]).stdout)["step"]
        before = step()
        harness.wait_until(lambda: step() > before, 120, "steps are made")

    def stopped(self, cluster, name, hang, *expected):
        cluster.signal(name, signal.SIGSTOP)
        answer = self.expect(cluster, hang, *expected)
        cluster.signal(name, signal.SIGCONT)
        return answer

    def switched(self, cluster, switch, hang, *expected):
        switch.touch()
        answer = self.expect(cluster, hang, *expected)
        switch.unlink()
        return answer

    def no_answer(self, address, hang, said):
        told = self.ask(address, expect=3)
        self.assertRegex(told, said)
        Why.explained.append(hang)
        harness.figure(f"{hang}, status 3 after {Why.answers[-1]:.1f} s: {told.strip()}")

    @classmethod
    def tearDownClass(cls):
        if cls.answers:
            harness.figure(f"{len(cls.on_the_page)} of them in the same words on the job's page")
            harness.figure(f"{len(cls.explained)} hangs explained by name; {len(cls.answers)} answers, the "
                           f"slowest after {max(cls.answers):.1f} s, the median after "
                           f"{sorted(cls.answers)[len(cls.answers) // 2]:.1f} s")

    def test_members_that_stop_and_what_they_wait_for(self):
        data, evaluation, cut, disk = (self.out(name) for name in ("data", "eval", "cut", "disk"))
        faults = {"worker_1": [f"slow=adult.data.gz:4s@while={data},slow=adult.test.gz:4s@while={evaluation},"
                               f"cut=members:in@while={cut}"],
                  "server_1": [f"slow=checkpoint/*:2s@while={disk}"]}
        sets = {**PATIENT, "checkpoint.every_steps": 20}
        with FailingCluster(harness.CENSUS, self.out("run"), sets=sets, faults=faults) as cluster:
            answer = self.until(cluster, lambda a: a["kind"] == "nothing", "steps are made")
            self.assertGreater(answer["steps_made"], 0)
            answer = self.stopped(cluster, "worker_1", "a worker is stopped", "silent", ["worker 1"],
                                  r"waits? for worker 1, which has not been heard of for [\d.]+ s; last it "
                                  r"was at \w+.* at step \d+")
            self.assertIn("SIGSTOP", answer["advice"])
            self.moves(cluster)
            self.stopped(cluster, "server_0", "a server is stopped", "silent", ["server 0"],
                         r"waits? for server 0, which has not been heard of for [\d.]+ s")
            self.moves(cluster)
            self.switched(cluster, data, "a data file does not open", "data", ["worker 1"],
                          r"worker 1, which has read no example for [\d.]+ s: stage (read|train), file .*adult\.data\.gz")
            self.moves(cluster)
            self.switched(cluster, evaluation, "an evaluation takes long", "data", ["worker 1"],
                          r"worker 1, which has read no example for [\d.]+ s: stage evaluate, file .*adult\.test\.gz")
            self.moves(cluster)
            self.switched(cluster, disk, "a checkpoint stalls", "disk", ["server 1"],
                          r"server 1, which has been busy with its disk for [\d.]+ s: (save|write) .*checkpoint")
            self.moves(cluster)
            # While others train they wait as well; behind an evaluation only the one that hears nothing does.
            # What one server had sent before may have come: then it is the other's that is waited for.
            self.switched(cluster, cut, "a worker does not hear the servers", "cycle|link", None,
                          r"worker 1 (and|waits for) server (0 and server 1|0|1).*: what (is sent to them, or what )?"
                          "they send,? does not arrive")
            self.moves(cluster)
            cluster.signal("scheduler", signal.SIGSTOP)
            self.no_answer(cluster.address, "the scheduler is stopped",
                           "the scheduler stands still: connections to tcp://.* are taken")
            cluster.signal("scheduler", signal.SIGCONT)
            self.moves(cluster)
            harness.run([HDPS, "scale", f"--scheduler={cluster.address}", "--scale_servers=+1"])
            answer = self.until(cluster, lambda a: a["notes"] and a["kind"] == "nothing", "the newcomer")
            self.assertRegex(answer["notes"][0], r"has waited [\d.]+ s for 1 of 3 servers \(server 2\) to join")
            Why.explained.append("a newcomer has not come")
            harness.figure(f"a newcomer has not come: {answer['notes'][0]}")
            cluster.processes["server_1"].kill()
            self.expect(cluster, "a lost server is waited for", "lost", ["server 1"],
                        r"server 1 \(.*\) is lost: its process has ended\. Missing for .*server 1")

    def test_members_that_do_not_come_and_ranks_that_wait(self):
        # The stages of a step in which worker 1 stays, some seconds apart.
        faults = {"worker_0": [SLOWLY], "worker_1": ["point=worker.step.computed:sleep=8s@75,point=worker.step.pushed:"
                                                     "sleep=8s@195,point=worker.step.ended:sleep=8s@315"]}
        epoch = 512  # Steps: long enough to stop a worker in the middle of one.
        sets = {**PATIENT, "parallel.dense_exchange": "allreduce", "train.batch_size": 64}
        late = ["worker_1"]
        with LateCluster(harness.CENSUS, self.out("run"), sets=sets, faults=faults, late=late) as cluster:
            self.expect(cluster, "a worker has not come", "missing", [],
                        r"the job has not begun: .* for 1 of 2 workers \(worker 1\) to join")
            refusing, port = harness.refusing_socket()
            self.addCleanup(refusing.close)
            wrong = f"tcp://127.0.0.1:{port}"
            command = [harness.program("hdps-worker"), f"--job={harness.CENSUS}", "--rank=1"]
            lost = subprocess.Popen([*command, *cluster.sets, f"--scheduler={wrong}"], stdin=subprocess.DEVNULL,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(lost.wait)
            self.addCleanup(lost.kill)
            answer = self.expect(cluster, "a worker dials another address", "missing", [], r"\(worker 1\) to join")
            self.assertIn("is its --scheduler the address", answer["advice"])
            self.no_answer(wrong, "nobody is at the address", "the scheduler is not there: nobody listens at")
            harness.run([*command, f"--scheduler={cluster.address}", "--set=seed=7"], expect=2)
            self.expect(cluster, "a worker of another job was refused", "missing", [],
                        r"\(worker 1\) to join, .*; .* was refused: .*job")
            cluster.late.clear()
            cluster.start("worker_1")
            self.moves(cluster)
            for hang, stage in (("a worker computes for long", "compute"), ("a worker's push takes long", "push"),
                                ("a worker ends no step", "advance")):
                self.expect(cluster, hang, "work", ["worker 1"],
                            rf"worker 0.* for worker 1, which has been at {stage} for [\d.]+ s at step \d+")
                self.moves(cluster)
            self.until(cluster, lambda a: 50 < a["step"] % epoch < epoch - 100, "the middle of an epoch")
            answer = self.stopped(cluster, "worker_0", "a rank of an allreduce is stopped", "silent", ["worker 0"],
                                  "worker 1.* for worker 0, which has not been heard of")
            other = next(m for m in answer["members"] if m["name"].startswith("worker 1"))
            self.assertEqual(other["waits_for"], ["worker 0"])

    def test_a_straggler_and_copies_that_are_missing(self):
        faults = {"worker_0": [SLOWLY], "worker_1": ["point=worker.step.computed:sleep=8s@75"]}
        sets = {**PATIENT, "train.mode": "ssp", "train.staleness_bound": 2, "cluster.replicas": 1}
        with FailingCluster(harness.CENSUS, self.out("run"), 3, 2, sets=sets, faults=faults) as cluster:
            self.expect(cluster, "others are at the staleness bound", "work", ["worker 1"],
                        r"worker 0.* wait for worker 1, which has been at compute for [\d.]+ s")
            self.moves(cluster)
            cluster.processes["server_2"].kill()
            answer = self.until(cluster, lambda a: a["notes"] and a["kind"] == "nothing", "copies are missing")
            self.assertRegex(answer["notes"][0], r"group \d has no copy until a server joins")
            Why.explained.append("rows have no copy")
            harness.figure(f"rows have no copy: {answer['notes'][0]}")

    def test_a_full_disk_of_spilled_rows(self):
        switch = self.out("full")
        job = harness.spilling_job(self.folder, spill_path=str(self.out("spill")))
        faults = {"server_0": [f"full=spill/*@while={switch}"]}
        with FailingCluster(job, self.out("run"), 1, 1, {}, faults) as cluster:
            cluster.wait_for(lambda: "rows beyond the limit go to" in cluster.log("server_0"), 60, "the folder")
            self.switched(cluster, switch, "the disk of spilled rows is full", "trouble", ["server 0"],
                          "worker 0 waits for server 0, which says: no space for spilled rows")


if __name__ == "__main__":
    harness.main()
