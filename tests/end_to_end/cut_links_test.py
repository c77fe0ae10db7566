"""Cuts links in one direction, or to some members only: the member that is cut off is lost, by name."""
import re

import harness
from failing_cluster import FailingCluster
from faults_test import DEAD_AFTER_MS, SLOW, SLOWLY, gap


class CutLinks(harness.Case):
    def cut(self, member, rule, said):
        """The rule holds from step 20 on until the member is lost; returns the job's log."""
        link = self.out("cut")
        faults = {f"worker_{i}": [SLOWLY] for i in range(2)}
        faults[member] = [",".join(faults.get(member, []) + [f"{rule}@while={link}"])]
        with FailingCluster(harness.CENSUS, self.out("run"), sets=SLOW, faults=faults) as cluster:
            cluster.wait_for_steps(20)
            link.touch()
            cluster.wait_for(lambda: re.search(said, cluster.log("scheduler")), 60, f"'{said}'")
            link.unlink()
            summary = cluster.finish(300)
            log = cluster.log()
        plain = harness.train(harness.CENSUS, self.out("undisturbed"), 2, 2, SLOW)
        self.assertEqual(summary["digest"], plain["digest"])
        self.assertGreaterEqual(summary["failures_survived"], 1)
        noticed = gap(log, "faults: cut off from", "is lost: ")
        harness.figure(f"{rule} at {member}: '{re.search(said, log)[0]}' {noticed:.1f} s after, "
                       f"{summary['steps_again']} steps trained again, same digest")
        # The answers on their way, a heartbeat, and threads that wait for a core.
        self.assertLess(noticed, 2 * DEAD_AFTER_MS / 1000)
        return log

    def test_a_server_that_hears_nothing(self):
        # The scheduler notices it, or the workers do, whose questions it does not hear either.
        self.cut("server_1", "cut=all:in",
                 r"server 1 .* is lost: (it is heard, but has heard nothing|2 workers have heard nothing)")

    def test_a_worker_that_hears_nothing(self):
        self.cut("worker_1", "cut=all:in", r"worker 1 .* is lost: it is heard, but has heard nothing")

    def test_a_server_that_workers_do_not_hear(self):
        for way in ("in", "out"):
            with self.subTest(way):
                self.setUp()
                self.cut("server_1", f"cut=members:{way}",
                         r"server 1 .* is lost: 2 workers have heard nothing of it")

    def test_a_worker_that_hears_no_server(self):
        self.cut("worker_1", "cut=members:in",
                 r"worker 1 .* is lost: it has heard none of the 2 servers")


if __name__ == "__main__":
    harness.main()
