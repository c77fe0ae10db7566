"""Trains on topics of Kafka, by the real programs and librdkafka's brokers: every message counts once."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

import harness
from failing_cluster import FailingCluster

sys.path.insert(0, str(harness.ROOT / "benchmarks"))
from tfrecords import example

ROWS, BATCH, PARTITIONS, WORKERS = 2400, 60, 6, 3
MESSAGES = harness.asked("HDPS_KAFKA_MESSAGES", 24_000, 1_000_000, "messages that are read while members are killed")
# The brokers keep 5 MiB of a partition.
KEPT_BYTES = 4 << 20
DOWN_SECONDS = 2 if harness.SHARE else 10


class Topic:
    """Brokers in a process of their own, and what was written of each partition."""

    def __init__(self, case, partitions=PARTITIONS, brokers=1):
        self.process = subprocess.Popen([harness.program("kafka_brokers"), str(partitions), str(brokers)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True)
        case.addCleanup(self.end)
        self.entry = self.process.stdout.readline().strip()
        self.written = [0] * partitions

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def write(self, partition, messages):
        self.process.stdin.writelines(f"{partition} {message}\n" for message in messages)
        self.written[partition] += len(messages)

    def flush(self):
        self.tell("flush")
        assert self.process.stdout.readline() == "written\n"

    def deal(self, messages, begin=0):
        """Message i goes to partition i modulo their number."""
        for i, message in enumerate(messages, begin):
            self.write(i % len(self.written), [message])
        self.flush()


def newest(out):
    """The newest manifest of a run; None: there is none."""
    for manifest in sorted(out.glob("checkpoint/*/manifest.json"), reverse=True):
        try:
            return json.loads(manifest.read_text())["checkpoint"]
        except FileNotFoundError:  # Removed since.
            pass
    return None


def offsets(out):
    """Where a run is in each partition, as its newest manifest says."""
    manifest = newest(out)
    return [next_ for _, next_ in manifest["offsets"]] if manifest else [0] * PARTITIONS


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

    def job(self, name, entry, steps=ROWS // BATCH, batch=BATCH, **kafka):
        self.object["data"].update({"train": [entry], "kafka": {"flush_s": 0, **kafka}})
        self.object["train"].update({"max_steps": steps, "batch_size": batch})
        self.out(name).mkdir(parents=True)
        return harness.write_job(self.out(name) / "job.json", self.object)

    def launch(self, job, out, workers=WORKERS, *flags):
        return self.start("hdps", "train", f"--job={job}", f"--out={out}", "--servers=1", f"--workers={workers}",
                          *flags)

    def cluster(self, job, out):
        with open(out.with_suffix(".log"), "w") as log:
            return self.start_command(harness.ROOT / "scripts" / "local_cluster.sh", f"--job={job}", f"--out={out}",
                                      "--servers=1", f"--workers={WORKERS}", env={"HDPS_BIN": str(harness.BIN)},
                                      stderr=log)

    def end(self, process, out, status=0, seconds=300):
        said = process.communicate(timeout=seconds)
        text = said[0] + (said[1] if said[1] is not None else out.with_suffix(".log").read_text())
        self.assertEqual(process.returncode, status, text[-3000:])
        return harness.summary_of(out) if status == 0 else text

    def train(self, topic, name, **kafka):
        """A job over the topic; returns its folder and its summary."""
        out = self.out(f"run_{name}")
        return out, self.end(self.launch(self.job(name, topic.entry, **kafka), out), out)

    def test_a_topic_trains_the_same_however_it_is_written_and_stopped(self):
        topic = Topic(self)
        topic.deal(self.rows)
        out, reference = self.train(topic, "whole")
        self.assertEqual((reference["examples"], reference["steps"]), (ROWS, ROWS // BATCH))
        self.assertEqual(offsets(out), topic.written)
        _, again = self.train(topic, "again")
        self.assertEqual(again["digest"], reference["digest"])
        # A file of the rows in the order of their partitions' turns.
        self.object["data"] = {**self.object["data"], "train": [str(self.out("data") / "train.tsv")], "shuffle_rows": 0}
        del self.object["data"]["kafka"]
        file = harness.train(harness.write_job(self.out("file.json"), self.object), self.out("file"), 1, WORKERS)
        self.assertEqual(file["digest"], reference["digest"])
        del self.object["data"]["shuffle_rows"]

        topic, half = Topic(self), ROWS // 2
        topic.deal(self.rows[:half])
        job, out = self.job("halves", topic.entry), self.out("halves_run")
        process = self.launch(job, out)
        harness.wait_until(lambda: sum(offsets(out)) == half, 60, "the checkpoint of half of the topic")
        process.send_signal(signal.SIGTERM)
        self.end(process, out)
        topic.deal(self.rows[half:], half)
        summary = self.end(self.launch(job, out), out)
        self.assertEqual((summary["digest"], summary["resumed_from"]), (reference["digest"], half // BATCH))
        harness.figure(f"a topic of {ROWS} messages read twice, and stopped at half of it: {summary['digest']}")

    # ---- Faults.

    def rows_of(self, partition):
        return self.rows[partition::PARTITIONS]

    def feed(self, topic, out, until, meanwhile=lambda: None):
        """Writes until each partition has so many messages, fast into some and slow into others, never more ahead of
        the run's checkpoints than brokers keep."""
        size = sum(map(len, self.rows)) / len(self.rows)
        ahead = int(KEPT_BYTES / size)
        while min(topic.written) < until:
            read = offsets(out)
            for p in range(PARTITIONS):
                begin, rows = topic.written[p], self.rows_of(p)
                count = min(until - begin, 400 * (p + 1), read[p] + ahead - begin)
                topic.write(p, [rows[i % len(rows)] for i in range(begin, begin + max(count, 0))])
            topic.flush()
            meanwhile()

    def kill(self, out, name):
        pid = int((out / "pid" / f"{name}.pid").read_text())
        os.kill(pid, signal.SIGKILL)
        harness.wait_until(lambda: (out / "pid" / f"{name}.pid").read_text().strip() not in ("", str(pid)), 60,
                           f"another {name}")

    def log_says(self, out, words):
        log = out / "log" / "scheduler.log"
        return log.exists() and words in log.read_text()

    def test_no_message_is_lost_or_counted_twice_whoever_dies(self):
        batch = 600
        each = MESSAGES // PARTITIONS // (batch // PARTITIONS) * (batch // PARTITIONS)
        steps = each * PARTITIONS // batch
        self.object["checkpoint"] = {"every_steps": 20, "delta_every_steps": 4, "keep": 3}
        topic, out = Topic(self), self.out("calm_run")
        process = self.launch(self.job("calm", topic.entry, steps, batch), out)
        self.feed(topic, out, each)
        reference = self.end(process, out, seconds=1800)
        self.assertEqual(reference["examples"], each * PARTITIONS)

        topic, out = Topic(self, brokers=2), self.out("killed_run")
        process = self.cluster(self.job("killed", topic.entry, steps, batch), out)
        for n, name in enumerate(("worker_1", "server_0", "scheduler"), 1):
            self.feed(topic, out, each * n // 4)
            harness.wait_until(lambda: newest(out) is not None, 120, "a checkpoint")
            topic.tell("errors")
            self.kill(out, name)
        topic.tell("down")
        harness.wait_until(lambda: self.log_says(out, "a broker is away"), 120, "a worker that names the broker")
        time.sleep(DOWN_SECONDS)  # The broker is away for so long.
        topic.tell("up")
        self.feed(topic, out, each)
        summary = self.end(process, out, seconds=1800)
        self.assertEqual((summary["digest"], summary["steps"]), (reference["digest"], steps))
        self.assertEqual(summary["examples"], each * PARTITIONS)
        self.assertEqual(offsets(out), topic.written)
        harness.figure(f"{each * PARTITIONS} messages, kill -9 of a worker, the server and the scheduler, a broker away "
                       f"for {DOWN_SECONDS} s: {summary['steps_again']} of {steps} steps again, {summary['digest']}")

    def crash(self, name, topic, faults, sets, servers=2, flush_s=0, meanwhile=lambda look: None):
        """A job whose worker 1 dies where the faults say. Returns its summary, and how many steps another worker in its
        place made again that some servers had."""
        out = self.out(name)
        job = self.job(f"{name}_job", topic.entry, flush_s=flush_s)
        with FailingCluster(job, out, servers, WORKERS, sets, {"worker_1": [faults]}) as cluster:
            meanwhile(cluster.look)
            summary, log = cluster.finish(), cluster.log()
        self.assertIn("crash on purpose", log)
        self.assertIn("nobody goes back", log)
        self.assertNotIn("the job goes on from", log)
        self.assertEqual(summary["failures_survived"], 1)
        return summary, sum(map(int, re.findall(r"some servers have the rows of (\d+) steps", log)))

    def test_a_worker_that_dies_is_replaced_in_place(self):
        """Its step is made again of the same messages, though a step's messages depend on when they come (flush_s)."""
        points = [(f"late=30%:0..50ms,seed={seed},point=worker.step.{point}:crash@{hit}")
                  for seed, (point, hit) in enumerate((point, hit) for point in ("pulled", "computed", "pushed", "acked", "ended")
                                                      for hit in (5, 21))]
        chosen, begun, again = harness.third_of(points, "points of a step"), 0, 0
        topic = Topic(self)
        topic.deal(self.rows)
        self.object["checkpoint"] = {"every_steps": 0}
        digest = self.train(topic, "undisturbed")[1]["digest"]
        for i, faults in enumerate(chosen):
            summary, left = self.crash(f"waits_{i}", topic, faults, {"train.mode": "sync"})
            self.assertEqual((summary["digest"], summary["examples"]), (digest, ROWS), faults)
            begun, again = begun + left, again + summary["steps_again"]

        short = []
        for mode in ("sync", "async"):
            for i, faults in enumerate(chosen):
                topic = Topic(self)
                topic.deal(self.rows[:ROWS // 4])

                def rest(look, topic=topic):
                    for p in range(PARTITIONS):
                        rows = self.rows_of(p)[ROWS // 4 // PARTITIONS:]
                        for begin in range(0, len(rows), 25):
                            topic.write(p, rows[begin:begin + 25])
                            topic.flush()
                            look()
                summary, left = self.crash(f"{mode}_{i}", topic, faults, {"train.mode": mode}, flush_s=0.05, meanwhile=rest)
                read = sum(offsets(self.out(f"{mode}_{i}")))
                self.assertEqual(summary["examples"], read, faults)
                short.append(read)
                begun, again = begun + left, again + summary["steps_again"]
        harness.figure(f"{3 * len(chosen)} workers of a topic die at a point of a step: all replaced in place; {begun} steps were at "
                       f"some servers, {again} made again; with flush_s {min(short)} to {max(short)} of {ROWS} messages read "
                       "in the steps of the job, each counted once; without it the digest of the undisturbed run")

    def test_partitions_that_fill_at_unlike_speeds_starve_nobody(self):
        """With the default flush_s: workers have 500, 700 and 900 messages, in parts of 200."""
        topic = Topic(self)
        for p in range(PARTITIONS):
            topic.write(p, self.rows[:100 * (p + 1)])
        topic.flush()
        out = self.out("unlike_run")
        begin = time.monotonic()
        job = self.job("unlike", topic.entry, steps=5, batch=600)
        del self.object["data"]["kafka"]["flush_s"]
        harness.write_job(job, self.object)
        summary = self.end(self.launch(job, out), out)
        self.assertEqual((summary["examples"], summary["steps"]), (sum(topic.written), 5))
        self.assertEqual(offsets(out), topic.written)
        harness.figure(f"500, 700 and 900 messages for 3 workers in parts of 200: 5 steps in "
                       f"{time.monotonic() - begin:.1f} s with flush_s 5")

    # ---- Formats and starts.

    def test_messages_of_all_formats_train_the_same(self):
        """An integer of 10 lets an example end with the byte of an LF, which a line of text would lose."""
        self.object["model"] = {"type": "wide_deep", "embedding_dim": 4, "hidden": [8], "device": "cpu"}
        rows = [{"y": i % 2, "c": f"c{i % 11}", "n": i % 12} for i in range(480)]
        forms = {"csv": lambda row: ",".join(map(str, row.values())).encode() + b"\n",
                 "jsonl": lambda row: json.dumps(row).encode(), "tfrecord": example}
        self.assertTrue(example(rows[10]).endswith(b"\n"))
        digests = {}
        for name, write in forms.items():
            topic = Topic(self)
            topic.deal(["=" + write(row).hex() for row in rows])
            self.object["data"] = {"format": name, "columns": [{"name": "y", "type": "label"}, {"name": "c"},
                                                               {"name": "n", "type": "numeric"}]}
            _, summary = self.train(topic, name, steps=8)
            self.assertEqual(summary["examples"], len(rows))
            digests[name] = summary["digest"]
        harness.figure(f"{len(rows)} rows as messages: {digests}")
        self.assertEqual(len(set(digests.values())), 1, digests)

    def test_a_job_begins_where_it_is_told(self):
        topic = Topic(self)
        topic.deal(self.rows[:1200])
        starts = {p: 10 + 20 * p for p in range(PARTITIONS)}
        out, summary = self.train(topic, "offsets", steps=2, start={str(p): at for p, at in starts.items()})
        self.assertEqual(summary["examples"], 2 * BATCH)
        self.assertEqual(sum(offsets(out)) - sum(starts.values()), 2 * BATCH)
        job = self.job("time", topic.entry, steps=2, start="2100-01-01T00:00:00Z")  # No message is as late.
        before, out = list(topic.written), self.out("time_run")
        process = self.cluster(job, out)
        harness.wait_until(lambda: self.log_says(out, "waits for rows after kafka://"), 60, "the wait for messages")
        topic.deal(self.rows[:2 * BATCH])
        self.end(process, out)
        self.assertEqual(offsets(out), [at + 2 * BATCH // PARTITIONS for at in before])

    # ---- Mistakes.

    def refused(self, name, status, needles, process, out):
        said = self.end(process, out, status)
        for needle in needles:
            self.assertIn(needle, said)
        harness.figure(f"[status {status}] {name}: {said.strip().splitlines()[-1][-240:]}")

    def test_mistakes(self):
        four = Topic(self, partitions=4)
        out = self.out("uneven_run")
        self.refused("4 partitions", 2, ("4 partitions for 3 workers", "take as many workers"),
                     self.launch(self.job("uneven", four.entry), out), out)

        none = Topic(self)
        none.tell("gone")
        out = self.out("none_run")
        self.refused("no topic", 2, ("clicks: the brokers have no such topic", "kafka-topics --list"),
                     self.launch(self.job("none", none.entry), out), out)

        other = Topic(self)
        other.deal(["{\"y\": 1}"] * 12)
        out = self.out("other_run")
        self.refused("another format", 2, ("clicks/", "data.max_bad_rows"),
                     self.launch(self.job("other", other.entry), out), out)

    def test_a_topic_that_goes_while_it_is_read(self):
        topic = Topic(self)
        topic.deal(self.rows[:BATCH * 10])
        job, out = self.job("goes", topic.entry), self.out("goes_run")
        process = self.launch(job, out)
        harness.wait_until(lambda: sum(offsets(out)) == BATCH * 10, 60, "the steps of what there is")
        process.send_signal(signal.SIGTERM)
        self.end(process, out)
        anew = Topic(self, partitions=3)  # Of the same name, elsewhere.
        self.object["data"]["train"] = [anew.entry]
        self.refused("a topic made anew", 3, ("partition 3, of which the job has read, is gone", "with --init"),
                     self.launch(harness.write_job(self.out("anew.json"), self.object), out), out)
        topic.tell("gone")
        self.refused("a topic that is gone", 2, ("clicks: the brokers have no such topic",), self.launch(job, out), out)


if __name__ == "__main__":
    harness.main()
