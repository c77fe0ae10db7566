"""Kills processes of a running job, and changes their number: it ends with the result of an undisturbed run."""
import json
import os
import random
import re
import statistics
import subprocess
import time

import harness
from launched import SETS, Launched

# So often each; scripts/night.sh asks for more.
KILLS = harness.asked("HDPS_KILLS", 1, 5, "kills of each kind")
FIRST = int(os.environ.get("HDPS_KILLS_SEED", 0))  # Number of the first of each kind, which decides its moment.


class ReferenceCase(harness.Case):
    """A test beside undisturbed runs, each made once."""
    @classmethod
    def setUpClass(cls):
        cls.undisturbed = {}

    def reference(self, sets=None):
        key = json.dumps(sets, sort_keys=True)
        if key not in self.undisturbed:
            out = self.out(f"undisturbed_{len(self.undisturbed)}")
            self.undisturbed[key] = Launched(out, sets=sets).end(self)
        return self.undisturbed[key]


class FailoverTest(ReferenceCase):
    def disturb(self, what, members_of, sets=None, check=None):
        """KILLS runs, each with a kill at a random moment; `members_of(i)` are killed at once."""
        stood, again, kills, silences = [], [], 0, []
        reference = self.reference(sets)
        for i in range(FIRST, FIRST + KILLS):
            chance = random.Random(f"{what} {i}")
            job = Launched(self.out(f"{what}_{i}"), sets=sets)
            time.sleep(chance.uniform(0, 1.0))  # The moment of the kill, not a wait for anything.
            kills += job.kill(*members_of(i))
            silences.append(job.longest_silence())
            summary = job.end(self)
            (check or self.same_digest)(reference, summary, f"{what} {i}")
            stood += [event["stood_seconds"] for event in job.events("stood_seconds")]
            again.append(summary["steps_again"])
        self.assertGreater(kills, 0)
        text = f"median {statistics.median(stood):.2f} s, worst {max(stood):.2f} s" if stood else "never"
        harness.figure(f"{what}: {kills} kills, every run right; stood {text}; no news of a step for "
                       f"{statistics.median(silences):.2f} s (median) to {max(silences):.2f} s; steps trained "
                       f"again {sum(again)} in all")

    def same_digest(self, reference, summary, what):
        self.assertEqual(summary["digest"], reference["digest"], what)
        self.assertEqual(summary["examples"], reference["examples"], what)
        # Sums of the same numbers, whoever has added them up.
        self.assertAlmostEqual(summary["train_logloss"], reference["train_logloss"], 12, what)

    def same_examples(self, reference, summary, what):
        """No order of updates is promised here, but each example counts once."""
        self.assertEqual(summary["examples"], reference["examples"], what)
        self.assertEqual(summary["steps"], reference["steps"], what)
        self.assertLess(abs(summary["eval_auc"] - reference["eval_auc"]), 0.02, what)

    def test_a_server_is_killed(self):
        self.disturb("a server killed, sync", lambda i: [f"server_{i % 2}"])

    def test_a_worker_is_killed(self):
        self.disturb("a worker killed, sync", lambda i: [f"worker_{i % 2}"])

    def test_the_scheduler_is_killed(self):
        self.disturb("the scheduler killed, sync", lambda i: ["scheduler"])

    def test_all_are_killed_at_once(self):
        self.disturb("all killed at once, sync",
                     lambda i: ["server_0", "server_1", "worker_0", "worker_1", "scheduler"])

    def test_whoever_is_killed_where_rows_have_copies(self):
        for what, members_of in harness.third_of((
                ("a server", lambda i: [f"server_{i % 2}"]), ("a worker", lambda i: [f"worker_{i % 2}"]),
                ("the scheduler", lambda i: ["scheduler"]),
                ("all at once", lambda i: ["server_0", "server_1", "worker_0", "worker_1", "scheduler"])), "kinds of kills"):
            self.disturb(f"{what} killed, with copies, sync", members_of, {"cluster.replicas": 1})

    def test_a_worker_that_keeps_rows_is_killed(self):
        """Rows kept at workers go back to the checkpoint like those at servers."""
        for more in harness.third_of(({}, {"cluster.replicas": 1}), "kinds of rows"):
            self.disturb(f"a worker that keeps rows killed, {more.get('cluster.replicas', 0)} copies",
                         lambda i: [f"worker_{i % 2}"],
                         {"model.vocab_cache_size": 300, "parallel.dense_exchange": "allreduce", **more})

    def test_a_worker_is_killed_in_a_sum_over_all(self):
        split = {"parallel.enable_parallel_optimizer": True,
                 "parallel.parallel_optimizer_config.parallel_optimizer_threshold": 0}
        for what, more in harness.third_of(
                (("", {}), (", a tensor a call", {"parallel.comm_fusion.openstate": False}), (", the optimizer split", split)),
                "kinds of sums"):
            self.disturb(f"a worker killed under allreduce{what}", lambda i: [f"worker_{i % 2}"],
                         {"parallel.dense_exchange": "allreduce", **more})

    def test_a_worker_is_killed_that_has_a_part_of_the_layers(self):
        cut = '[{"layers": ["deep1"], "shard": [1, 2]}, {"layers": ["deep2"], "shard": [2, 1]}]'
        for what, more in harness.third_of(
                (("with parts of two layers", {"parallel.blocks": cut}),
                 ("with half of the features", {"parallel.blocks": cut, "parallel.dataset_strategy": "[[1, 2]]"})),
                "kinds of parts"):
            self.disturb(f"a worker killed {what}", lambda i: [f"worker_{i % 2}"],
                         {"parallel.dense_exchange": "allreduce", "parallel.parallel_mode": "hybrid_parallel", **more})

    def test_a_server_is_killed_between_two_deltas(self):
        self.disturb("a server killed, a delta every 20 steps", lambda i: [f"server_{i % 2}"],
                     {"checkpoint.delta_every_steps": 20})

    def test_async_and_ssp(self):
        for mode in harness.third_of(("async", "ssp"), "modes"):
            sets = {"train.mode": mode, **({"train.staleness_bound": 2} if mode == "ssp" else {})}
            self.disturb(f"a worker killed, {mode}", lambda i: [f"worker_{i % 2}"], sets, self.same_examples)
            self.disturb(f"a server killed, {mode}", lambda i: [f"server_{i % 2}"], sets, self.same_examples)


class ScaleTest(ReferenceCase):
    def scale(self, job, expect=0, **change):
        listen = re.search(r"listens on (\S+),", (job.out / "log" / "scheduler.log").read_text()).group(1)
        done = harness.run([harness.program("hdps"), "scale", f"--scheduler={listen}",
                            *[f"--scale_{k}={v}" for k, v in change.items()]], expect=expect)
        return listen, done.stdout + done.stderr

    def join(self, job, role, listen, sets, number=0):
        flags = ["--listen=tcp://127.0.0.1:0"] if role == "server" else []
        return subprocess.Popen([harness.program(f"hdps-{role}"), f"--job={harness.CENSUS}",
                                 f"--scheduler={listen}", *harness.merged_settings({**SETS, **sets}),
                                 f"--log_file={job.out}/log/late_{role}_{number}.log", *flags],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def run_and_scale(self, role, more=None, joining=1):
        """Two of a role become 2 + joining, and then one fewer; undisturbed, tables keep their rows apart."""
        epochs = {"train.epochs": harness.share(20, 40, "20 of 40 epochs while members join and leave")}
        sets = {**epochs, **harness.SAME_FEATURES, **(more or {})}
        reference = self.reference({**epochs, **harness.SAME_FEATURES, **harness.APART})
        job = Launched(self.out("scaled"), sets=sets)
        listen, said = self.scale(job, **{f"{role}s": f"+{joining}"})
        self.assertIn(f"start {joining} of {2 + joining} {role}s", said)
        late = [self.join(job, role, listen, sets, i) for i in range(joining)]
        for process in late:
            self.addCleanup(process.kill)
        harness.wait_until(lambda: job.events("rows_moved") or not job.training(), 60, "the first change")
        self.scale(job, **{f"{role}s": "-1"})
        summary = job.end(self)
        for process in late:
            self.assertEqual(process.wait(timeout=30), 0)  # One left as it was asked to, others with the job.
        self.assertIn(harness.JOINED, (job.out / "log" / "server_0.log").read_text())
        changes = job.events("rows_moved")
        self.assertEqual([c[f"{role}s"] for c in changes], [2 + joining, 1 + joining])
        self.assertEqual(summary["failures_survived"], 0)
        self.assertEqual(summary["examples"], reference["examples"])
        return reference, summary, changes

    def test_a_server_joins_and_leaves(self):
        reference, summary, changes = self.run_and_scale("server")
        self.assertEqual(summary["digest"], reference["digest"])
        part = changes[0]["rows_moved"] / summary["rows"]
        self.assertLessEqual(changes[0]["shards_moved"], 1.1 / 3 * 32)
        harness.figure(f"a server joins and leaves: the digest of the undisturbed run; {part:.3f} of the rows and "
                       f"{changes[0]['shards_moved']} of 32 shards moved (1.1/3 are 11.7); it stood for "
                       f"{changes[0]['stood_seconds']} s and {changes[1]['stood_seconds']} s")

    def test_two_workers_join_and_one_leaves(self):
        reference, summary, changes = self.run_and_scale("worker", joining=2)
        self.assertLess(abs(summary["eval_auc"] - reference["eval_auc"]), 0.001)
        harness.figure(f"two workers become four, then three: {summary['examples']} examples, each once; AUC "
                       f"{summary['eval_auc']:.5f} beside {reference['eval_auc']:.5f}; it stood for "
                       f"{changes[0]['stood_seconds']} s and {changes[1]['stood_seconds']} s")

    def test_a_worker_joins_and_leaves_where_rows_have_copies(self):
        """The rows stay where they are; the copies have what every worker has done."""
        _, summary, changes = self.run_and_scale("worker", {"cluster.replicas": 1})
        self.assertEqual([c["shards_moved"] for c in changes], [0, 0])
        self.assertEqual(summary["steps_again"], 0)

    def test_a_server_joins_and_leaves_where_rows_have_copies(self):
        reference, summary, changes = self.run_and_scale("server", {"cluster.replicas": 1})
        self.assertEqual(summary["digest"], reference["digest"])
        self.assertEqual(summary["steps_again"], 0)
        harness.figure(f"a server joins and leaves, with copies: {changes[0]['shards_moved']} of 32 shards "
                       f"come to another server, it stood for {changes[0]['stood_seconds']:.2f} s")


if __name__ == "__main__":
    harness.main()
