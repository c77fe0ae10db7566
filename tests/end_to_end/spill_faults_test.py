"""Tests a full or failing disk for spilled rows: the job waits, or continues with another server."""
import re

import harness
from failing_cluster import FailingCluster
from faults_test import gap

DEAD_AFTER_MS = 1000


class SpillFaults(harness.Case):
    def setUp(self):
        super().setUp()
        self.job = harness.spilling_job(self.folder, dead_after_ms=DEAD_AFTER_MS,
                                        spill_path=str(self.out("spill")))

    def cluster(self, name, *server_faults):
        return FailingCluster(self.job, self.out(name), 1, 1, {}, {"server_0": list(server_faults)})

    def undisturbed(self):
        with self.cluster("undisturbed") as cluster:
            summary = cluster.finish()
        self.assertGreater(summary["rows_on_disk"], 1000)
        return summary["digest"]

    def test_a_full_disk_is_waited_for(self):
        """Nobody is lost however long it lasts; it is said at once; nothing is trained again."""
        switch = self.out("full")
        goes_on = r"server 0 \([^)]*\) goes on"
        with self.cluster("run", f"full=spill/*@while={switch}") as cluster:
            cluster.wait_for(lambda: "rows beyond the limit go to" in cluster.log("server_0"), 60,
                             "the server has its folder")
            switch.touch()
            cluster.wait_for(lambda: "waits: no space for spilled rows" in cluster.log("scheduler"),
                             120, "the full disk is told")
            cluster.wait_some(4 * DEAD_AFTER_MS / 1000)
            self.assertNotRegex(cluster.log("scheduler"), goes_on)
            switch.unlink()
            cluster.wait_for(lambda: re.search(goes_on, cluster.log("scheduler")), 60,
                             "it goes on")
            summary = cluster.finish()
            log = cluster.log()
        self.assertEqual(cluster.ends, [])
        self.assertEqual(summary["failures_survived"], 0)
        self.assertIn("No space left on device", cluster.log("scheduler"))
        self.assertEqual(summary["digest"], self.undisturbed())
        told = gap(log, "the disk is full", "waits: no space")
        harness.figure(f"no space for spilled rows for {4 * DEAD_AFTER_MS / 1000:.0f} s: said "
                       f"{told:.3f} s after the first write that was refused, the job stands and "
                       "goes on by itself, same digest")
        self.assertLess(told, 1)

    def test_a_disk_that_fails_costs_one_server(self):
        """Another takes its place; what died, and why, is said."""
        with self.cluster("run", "failing=spill/*:30") as cluster:
            summary = cluster.finish()
            log = cluster.log("scheduler")
        self.assertEqual([(name, status) for name, status, _ in cluster.ends], [("server_0", 3)])
        self.assertRegex(log, r"server 0 \(.*\) is lost: spilled rows in .*Input/output error")
        self.assertEqual(summary["failures_survived"], 1)
        self.assertEqual(summary["digest"], self.undisturbed())
        harness.figure(f"the disk of a server fails: another takes its place, "
                       f"{summary['steps_again']} steps trained again, same digest")

    def test_a_server_that_fails_again_and_again_ends_the_job(self):
        with self.cluster("run", *["point=spill.write:error@60"] * 8) as cluster:
            with self.assertRaisesRegex(AssertionError, "scheduler gave up with status 3"):
                cluster.finish()
            log = cluster.log("scheduler")
        self.assertRegex(log, r"server 0 has failed 3 times without a step of progress between, at "
                              r"first server 0 \(.*\): .*spill.write")
        self.assertRegex(log, r"goes on from (step \d+, checkpoint|the first step)")
        harness.figure(f"a disk that fails every server: given up after "
                       f"{cluster.starts['server_0']} of them, the first cause is named")


if __name__ == "__main__":
    harness.main()
