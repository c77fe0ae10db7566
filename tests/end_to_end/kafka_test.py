"""Trains on a topic of Kafka, by the real programs and librdkafka's brokers: every message counts once."""
import os
import pathlib
import signal
import subprocess
import unittest

import harness

ROWS, BATCH, PARTITIONS = 2400, 60, 6
STEPS = ROWS // BATCH


@unittest.skipUnless(pathlib.Path(harness.program("kafka_brokers")).exists(), "built without librdkafka")
class Kafka(harness.DaemonsCase):
    def setUp(self):
        super().setUp()
        data = harness.generate(self.out("data"), rows=ROWS, eval_rows=8, vocabulary=50, seed=5)
        self.rows = (data / "train.tsv").read_text().splitlines()
        self.object = harness.reference_job(data, batch_size=BATCH)
        self.object["model"].update({"embedding_dim": 4, "hidden": [8]})
        del self.object["data"]["eval"]
        self.object["checkpoint"] = {"every_steps": 10, "delta_every_steps": 2}
        self.object["cluster"] = {"heartbeat_ms": 100, "dead_after_ms": 2000}
        self.object["train"]["max_steps"] = STEPS

    def brokers(self, partitions=PARTITIONS):
        process = subprocess.Popen([harness.program("kafka_brokers"), str(partitions)], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(process.communicate)
        return process, process.stdout.readline().strip()

    def write(self, brokers, rows, begin=0):
        """Row i goes to partition i modulo their number."""
        for i, row in enumerate(rows, begin):
            brokers.stdin.write(f"{i % PARTITIONS} {row}\n")
        brokers.stdin.write("flush\n")
        brokers.stdin.flush()
        self.assertEqual(brokers.stdout.readline(), "written\n")

    def job(self, name, entry, **kafka):
        self.object["data"].update({"train": [entry], "kafka": {"flush_s": 0, **kafka}})
        self.out(name).mkdir(parents=True)
        return harness.write_job(self.out(name) / "job.json", self.object)

    def launch(self, job, out, workers=3):
        return self.start("hdps", "train", f"--job={job}", f"--out={out}", "--servers=1", f"--workers={workers}")

    def end(self, process, status=0):
        said = process.communicate(timeout=120)
        self.assertEqual(process.returncode, status, said[0][-2000:] + said[1][-2000:])
        return said[1]

    def offsets(self, out, step):
        manifest = harness.json.loads((out / "checkpoints" / f"step_{step:010d}" / "manifest.json").read_text())
        return manifest["offsets"]

    def test_a_topic_trains_the_same_however_it_is_written_and_stopped(self):
        brokers, entry = self.brokers()
        self.write(brokers, self.rows)
        whole = self.out("whole")
        self.end(self.launch(self.job("one", entry), whole))
        reference = harness.summary_of(whole)
        self.assertEqual((reference["examples"], reference["steps"]), (ROWS, STEPS))
        self.assertEqual(self.offsets(whole, STEPS), [[p, ROWS // PARTITIONS] for p in range(PARTITIONS)])

        brokers, entry = self.brokers()
        half = ROWS // 2
        self.write(brokers, self.rows[:half])
        job, out = self.job("two", entry), self.out("halves")
        process = self.launch(job, out)
        harness.wait_until(lambda: (out / "checkpoints" / f"step_{STEPS // 2:010d}" / "manifest.json").exists(), 60,
                           "the checkpoint of half of the topic")
        process.send_signal(signal.SIGTERM)
        self.end(process)
        self.write(brokers, self.rows[half:], half)
        self.end(self.launch(job, out))
        summary = harness.summary_of(out)
        self.assertEqual((summary["digest"], summary["steps"]), (reference["digest"], STEPS))

    def test_a_worker_that_dies_and_a_broker_that_is_away_cost_no_message(self):
        brokers, entry = self.brokers()
        self.write(brokers, self.rows)
        whole = self.out("all")
        self.end(self.launch(self.job("three", entry), whole))
        reference = harness.summary_of(whole)

        brokers, entry = self.brokers()
        job, out = self.job("dies", entry), self.out("died")
        half = ROWS // 2
        self.write(brokers, self.rows[:half])
        process = self.start_command(harness.ROOT / "scripts" / "local_cluster.sh", f"--job={job}", f"--out={out}",
                                     "--servers=1", "--workers=3", env={"HDPS_BIN": str(harness.BIN)})
        harness.wait_until(lambda: any(out.glob("checkpoints/step_*/manifest.json")), 60, "the first checkpoint")
        os.kill(int((out / "pid" / "worker_1.pid").read_text()), signal.SIGKILL)
        brokers.stdin.write("down\nup\n")
        self.write(brokers, self.rows[half:], half)
        self.end(process)
        summary = harness.summary_of(out)
        self.assertEqual((summary["digest"], summary["steps"]), (reference["digest"], STEPS))
        self.assertEqual(self.offsets(out, STEPS), [[p, ROWS // PARTITIONS] for p in range(PARTITIONS)])
        harness.figure(f"kill -9 of a worker: {summary['steps_again']} of {STEPS} steps again, {summary['digest']}")

    def test_mistakes(self):
        brokers, entry = self.brokers(partitions=4)
        said = self.end(self.launch(self.job("uneven", entry), self.out("u"), workers=3), 2)
        self.assertIn("4 partitions for 3 workers", said)


if __name__ == "__main__":
    harness.main()
