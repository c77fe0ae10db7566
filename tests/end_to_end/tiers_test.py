"""Tests tables larger than memory, and tables with expiry: the same answer, within the limit."""
import json
import os
import pathlib
import re
import shutil
import subprocess

import harness

LIMIT_MIB = 64


def peak_mib(pid_file):
    """VmHWM of the process while it runs; 0 when it has ended."""
    try:
        status = pathlib.Path(f"/proc/{int(pid_file.read_text())}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024
    except (OSError, ValueError, IndexError):
        return 0


class Tiers(harness.Case):
    def setUp(self):
        super().setUp()
        self.data = self.out("data")
        harness.generate(self.data, rows=81920, eval_rows=64, vocabulary=60000, zipf=1.05, seed=3)
        job = harness.reference_job(self.data, batch_size=1024, eval_each_epoch=False)
        job["data"]["shuffle_rows"] = 4096
        job["model"]["hidden"] = [8]
        job["checkpoint"] = {"keep": 1}
        self.job = harness.write_job(self.out("job.json"), job)

    def cluster(self, name, sets, servers=1, extra=()):
        """A run as daemons: its summary, the largest peak of a server in MiB, and its log."""
        out = self.out(name)
        process = subprocess.Popen(
            [str(harness.ROOT / "scripts/local_cluster.sh"), f"--job={self.job}", f"--out={out}",
             f"--servers={servers}", "--workers=1", *harness.merged_settings(sets), *extra],
            env={**os.environ, "HDPS_BIN": str(harness.BIN)}, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True)
        peak = 0

        def ended():
            nonlocal peak
            for rank in range(servers):
                peak = max(peak, peak_mib(out / "pid" / f"server_{rank}.pid"))
            return process.poll() is not None

        harness.wait_until(ended, 280, "the end of the job")
        error = process.stderr.read()
        process.stderr.close()
        self.assertEqual(process.returncode, 0, error)
        return harness.summary_of(out), peak, (out / "log" / "server_0.log").read_text()

    def test_a_limit_changes_memory_alone(self):
        """A table of several times its limit: same digest, peak within 1.1 of the limit."""
        limit = {"cluster.memory_limit": f"{LIMIT_MIB}MiB"}
        whole, whole_peak, _ = self.cluster("whole", {})
        tiered, peak, log = self.cluster("tiered", limit)
        self.assertEqual(tiered["digest"], whole["digest"])
        self.assertEqual(tiered["rows"], whole["rows"])
        self.assertEqual(whole["rows_on_disk"], 0)
        self.assertGreater(tiered["rows_on_disk"], whole["rows"] / 2)
        self.assertGreater(tiered["rows_fetched"], 1000)
        self.assertGreater(whole_peak, 2 * LIMIT_MIB)
        process = re.search(r"memory of server 0: process ([\d.]+ [KMG]iB)", log)
        harness.figure(f"{whole['rows']:,} rows: {whole_peak:.0f} MiB without a limit, {peak:.0f} MiB "
                       f"with one of {LIMIT_MIB} MiB, of it the bare process {process[1]}; "
                       f"{tiered['rows_on_disk']:,} rows on disk, {tiered['rows_fetched']:,} came back")
        self.assertLessEqual(peak, 1.1 * LIMIT_MIB)
        self.assertFalse((self.out("tiered") / "spill" / "server_0").exists())

        # Stopped half way and resumed by two servers, both from a checkpoint with rows of both tiers.
        half, _, _ = self.cluster("half", {**limit, "train.max_steps": 40})
        self.assertEqual(half["steps"], 40)
        resumed, _, _ = self.cluster("half", limit, servers=2)
        self.assertEqual(resumed["resumed_from"], 40)
        self.assertEqual(resumed["digest"], whole["digest"])

    def test_saves_are_those_of_their_step_while_training_goes_on(self):
        """Under a limit rows are kept on disk before they change: each checkpoint is right, and memory is kept."""
        sets = {"cluster.memory_limit": f"{LIMIT_MIB}MiB", "model.policy.evict_after_steps": 30}
        undisturbed, _, _ = self.cluster("undisturbed", sets)
        self.assertGreater(undisturbed["rows_evicted"], 1000)
        every = {**sets, "checkpoint.every_steps": 20, "checkpoint.keep": 9}
        saved, peak, _ = self.cluster("saved", every, servers=2)
        self.assertEqual(saved["digest"], undisturbed["digest"])
        self.assertGreater(saved["rows_fetched"], 1000)
        self.assertLessEqual(peak, 1.1 * LIMIT_MIB)
        checkpoints = self.out("saved") / "checkpoint"
        taken = []
        for step in (60, 40, 20):
            shutil.rmtree(checkpoints / f"step_{step + 20:010}")
            manifest = json.loads((checkpoints / f"step_{step:010}" / "manifest.json").read_text())
            files = manifest["checkpoint"]["files"]
            taken.append(sum(file["bytes"] for file in files))
            self.assertTrue(all("pack" in file for file in files), "some were written while the job stood")
            kept = self.out(f"kept_{step}")
            shutil.copytree(self.out("saved"), kept)
            resumed, _, _ = self.cluster(kept.name, sets)
            self.assertEqual(resumed["resumed_from"], step)
            self.assertEqual(resumed["digest"], undisturbed["digest"])
            shutil.rmtree(kept)
        harness.figure(f"saves of {taken[-1] / 2**20:.0f} to {taken[0] / 2**20:.0f} MiB beside training: {peak:.0f} MiB at most "
                       f"under a limit of {LIMIT_MIB}; resumed from each of 3 with the digest of the undisturbed run")

    def test_policies_do_not_depend_on_the_cluster(self):
        policy = {"model.policy.admit_after": 2, "model.policy.admit_sketch_bytes": "1MiB",
                  "model.policy.evict_after_steps": 40,
                  "model.policy.max_rows": 60000, "model.policy.evict_by": "use"}
        names = ("rows", "rows_admitted", "gradients_refused", "rows_evicted", "digest")
        one = harness.train(self.job, self.out("one"), sets=policy)
        for name in names[:-1]:
            self.assertGreater(one[name], 0, name)
        self.assertEqual(one["rows"], one["rows_admitted"] - one["rows_evicted"])
        self.assertIn(one["dense_rows"], range(1, 100))
        self.assertLessEqual(one["rows"], 2 * 60000)
        two = harness.train(self.job, self.out("two"), servers=2, sets=policy,
                            extra=("--threads=2",))
        tiered = harness.train(self.job, self.out("tiered"), servers=2,
                               sets={**policy, "cluster.memory_limit": "15MiB"})
        self.assertGreater(tiered["rows_fetched"], 0)
        for name in names:
            self.assertEqual(one[name], two[name], name)
            self.assertEqual(one[name], tiered[name], name)
        harness.train(self.job, self.out("half"), sets={**policy, "train.max_steps": 40})
        resumed = harness.train(self.job, self.out("half"), servers=2, sets=policy)
        self.assertEqual(resumed["resumed_from"], 40)
        self.assertEqual(resumed["digest"], one["digest"])
        harness.figure(f"{one['rows_admitted']:,} keys admitted, {one['gradients_refused']:,} gradients "
                       f"refused, {one['rows_evicted']:,} rows evicted, whatever the cluster")

    def test_memory_is_foreseen(self):
        """What a server says it will take, for rows it is told of, is what it takes, within 10 %."""
        whole = harness.train(self.job, self.out("whole"))
        rows = whole["rows"] // 2  # Of each of two tables, nearly.
        _, peak, log = self.cluster("foreseen", {}, extra=(f"--expected_rows={rows}",))
        foreseen = re.search(r"memory of server 0: .* = ([\d.]+) ([KMG]iB)", log)
        mib = float(foreseen[1]) * {"KiB": 1 / 1024, "MiB": 1, "GiB": 1024}[foreseen[2]]
        harness.figure(f"memory foreseen {mib:.0f} MiB, peak {peak:.0f} MiB")
        self.assertLess(abs(mib - peak), 0.1 * peak)

    def test_a_disk_that_fails_ends_one_process_and_touches_nothing_saved(self):
        """Status 3, the folder and the mend are named, and the job goes on from its checkpoint.

        Where nobody starts servers again: spill_faults_test.py has those that are."""
        limit = {"cluster.memory_limit": "20MiB"}
        half = harness.train(self.job, self.out("run"), sets={**limit, "train.max_steps": 20})
        out = self.out("run")
        process = subprocess.Popen(
            [harness.program("hdps"), "train", f"--job={self.job}", f"--out={out}",
             *harness.merged_settings({**limit, "train.epochs": 9})],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        spill = out / "spill" / "server_0"
        harness.wait_until(lambda: list(spill.glob("*.sst")) or process.poll() is not None, 120,
                           "rows on disk")
        shutil.rmtree(spill, ignore_errors=True)  # It goes on writing there meanwhile.
        while spill.exists():
            shutil.rmtree(spill, ignore_errors=True)
        _, error = process.communicate(timeout=240)
        self.assertEqual(process.returncode, 3, error)
        self.assertIn(str(spill), error)
        self.assertIn("cluster.spill_path", error)
        resumed = harness.train(self.job, out, sets={**limit, "train.max_steps": 30})
        self.assertEqual(half["steps"], 20)
        self.assertEqual(resumed["resumed_from"], 20)
        self.assertEqual(resumed["steps"], 30)

    def test_too_small_a_limit_is_refused(self):
        done = harness.cluster(self.job, self.out("small"), sets={"cluster.memory_limit": "1MiB"},
                               expect=2)
        self.assertIn("cluster.memory_limit", done.stderr)
        self.assertIn("give at least", done.stderr)


if __name__ == "__main__":
    harness.main()
