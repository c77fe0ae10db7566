"""Runs a job on machines made of namespaces: over a slow link it learns the same as over loopback, and the
link carries the bytes that its members report."""
import re
import sys
import unittest

import harness

sys.path.insert(0, str(harness.ROOT / "benchmarks" / "links"))
import cluster_run  # noqa: E402  (it lies in another folder)
import namespaces  # noqa: E402

BYTES_PER_SECOND = 100e6 / 8
# A TCP segment with timestamps over Ethernet carries at most so much, and so much is around it.
SEGMENT_BYTES, AROUND_BYTES = 1448, 66
# Of a frame: header, envelope and up to six sections, each with at most nine bytes of ZeroMQ's own
# in front, and each perhaps a segment of its own.
PARTS, PART_BYTES = 8, 9
# Finding addresses, shaking hands, and what comes twice, as TCP took it for lost.
ELSE_BYTES, TWICE = 64 << 10, 0.01
MOVED = re.compile(r"sent (\d+) bytes in (\d+) frames, of these bytes (\d+) through shared memory; "
                   r"received (\d+) bytes in (\d+) frames")


@unittest.skipIf(why := namespaces.why_not(), f"no machines made of namespaces here: {why}")
class Links(harness.Case):
    def job(self):
        data = harness.generate(self.folder / "data", rows=8192, eval_rows=64, vocabulary=1000, seed=5)
        return harness.write_job(self.folder / "job.json", harness.reference_job(data, epochs=2))

    def check_bytes(self, counted, sent, frames, received, received_frames):
        """What left a machine beside what its only member says."""
        self.assertGreaterEqual(counted, sent)
        segments = (sent + received) / SEGMENT_BYTES + PARTS * (frames + received_frames)
        most = (1 + TWICE) * sent + PARTS * PART_BYTES * frames + AROUND_BYTES * segments + ELSE_BYTES
        self.assertLessEqual(counted, most)
        return counted / sent

    def test_the_same_job_over_a_slow_link(self):
        job = self.job()
        plain = harness.cluster(job, self.out("loopback"))
        # Of the two machines one has the scheduler and the server, the other the worker: all that
        # the worker sends crosses the link.
        with namespaces.Machines(2, BYTES_PER_SECOND) as machines:
            run = cluster_run.ClusterRun(machines, harness.BIN, job, self.out("linked"),
                                         servers=(1, 0), workers=(0, 1))
            summary = run.run(300)
            devices = machines.counters(1)
        self.assertEqual(summary["digest"], plain["digest"])
        log = next((run.folder(1) / "log").glob("worker_*.log")).read_text()
        sent, frames, shared, received, received_frames = map(int, MOVED.search(log).groups())
        self.assertEqual(shared, 0, "machines do not share memory")
        more = self.check_bytes(devices[namespaces.PORT]["out"], sent, frames, received, received_frames)
        self.check_bytes(devices[namespaces.PORT]["in"], received, received_frames, sent, frames)
        # Most of what came, came while it trained, and no faster than the link is.
        self.assertGreater(run.ends[-1], received / BYTES_PER_SECOND / 2)
        harness.figure(f"a link of 100 Mbit/s carried {more:.3f} of the {sent:,} bytes that the worker "
                       f"sent; same digest as over loopback")

    def test_nothing_is_left_behind(self):
        with namespaces.Machines(2, BYTES_PER_SECOND) as machines:
            names = [machines.switch, machines.namespace(0), machines.namespace(1)]
            there = harness.run(["ip", "netns", "list"]).stdout
            for name in names:
                self.assertIn(name, there)
        there = harness.run(["ip", "netns", "list"]).stdout
        for name in names:
            self.assertNotIn(name, there)


if __name__ == "__main__":
    harness.main()
