"""Trains the quickstart's job on real data: one process and a cluster of daemons must reach the same AUC."""
import json
import re

import harness


class Census(harness.Case):
    def test_auc_embedded_and_cluster(self):
        """Wide&Deep on adult.data reaches 0.912 on the 16,281 rows of adult.test, in both forms."""
        embedded = harness.train(harness.CENSUS, self.out("embedded"), 2, 2)
        cluster = harness.cluster(harness.CENSUS, self.out("cluster"), 2, 2)
        for name, s in (("embedded", embedded), ("cluster", cluster)):
            harness.figure(f"{name}: AUC {s['eval_auc']:.4f}, logloss {s['eval_logloss']:.4f}, {s['steps']} steps, "
                  f"{s['examples_per_second']:,.0f} examples/s, {s['wall_seconds']:.1f} s")
            self.assertGreaterEqual(s["eval_auc"], 0.912)
            self.assertLess(s["wall_seconds"], 120)
            self.assertEqual((s["servers"], s["workers"]), (2, 2))
        self.assertEqual(embedded["digest"], cluster["digest"])

        out = self.out("cluster")
        for file in ("summary.json", "metrics.jsonl", "log/scheduler.log", "log/server_0.log",
                     "log/server_1.log", "log/worker_0.log", "log/worker_1.log"):
            self.assertTrue((out / file).exists(), file)
        self.assertEqual(list((out / "pid").iterdir()), [])
        for line in (out / "metrics.jsonl").read_text().splitlines():
            json.loads(line)

        # What was trained can be used: evaluate and predict agree with the run's own figures.
        checkpoint = f"--checkpoint={out}/checkpoint"
        said = harness.run([harness.program("hdps"), "evaluate", f"--job={harness.CENSUS}", checkpoint])
        self.assertIn(f"{cluster['best_auc']:.6f}", said.stdout)
        newest = harness.run([harness.program("hdps"), "evaluate", "--which=newest", checkpoint])
        self.assertIn(f"{cluster['eval_auc']:.6f}", newest.stdout)
        test = harness.CENSUS.parent / "adult.test.gz"
        said = harness.run([harness.program("hdps"), "predict", f"--job={harness.CENSUS}", checkpoint,
                            f"--data={test}"])
        scores = [float(line) for line in said.stdout.split()]
        self.assertEqual(len(scores), 16281)
        self.assertTrue(all(0 < s < 1 for s in scores))
        # Rows to predict need no label: neither its text nor its cell.
        import gzip
        bare = self.out("bare.csv")
        rows = [line.decode().strip().rsplit(",", 1)[0] for line in gzip.open(test) if b"," in line]
        for name, ending in (("no cell", ""), ("empty cell", ",")):
            bare.write_text("".join(row + ending + "\n" for row in rows))
            again = harness.run([harness.program("hdps"), "predict", f"--job={harness.CENSUS}",
                                 checkpoint, f"--data={bare}"])
            self.assertEqual(again.stdout, said.stdout, name)
        labels = [b">50K" in line for line in gzip.open(test) if b"," in line]
        auc = self.auc(scores, labels)
        harness.figure(f"AUC of the predicted probabilities, computed here: {auc:.6f}")
        self.assertAlmostEqual(auc, cluster["best_auc"], places=6)

    def test_modes_learn_as_well(self):
        """Async, bounded staleness, and asynchronous rows beside dense tensors by allreduce."""
        sync = harness.train(harness.CENSUS, self.out("sync"), 2, 8)["eval_auc"]
        for name, sets in (
            ("async", {"train.mode": "async"}),
            ("ssp, bound 2", {"train.mode": "ssp", "train.staleness_bound": 2}),
            ("async rows, dense by allreduce", {"train.mode": "async",
                                                "parallel.dense_exchange": "allreduce"}),
        ):
            s = harness.train(harness.CENSUS, self.out(name), 2, 8, sets)
            harness.figure(f"8 workers, {name}: AUC {s['eval_auc']:.4f} (sync {sync:.4f}), "
                           f"largest staleness {s['staleness_max']}")
            # How stale unbounded reads are is up to the machine's other load, and so is what they cost: there
            # the floor is that of the job itself. Where staleness is bounded, so is the loss.
            self.assertGreaterEqual(s["eval_auc"], sync - 0.004 if "bound" in name else 0.912)
            if "bound" in name:
                self.assertLessEqual(s["staleness_max"], 2)

    def test_weights_in_16_bits_learn_as_well(self):
        """Embeddings in fp16 and in bf16: the AUC of fp32 within 0.002, twice the same digest."""
        whole = harness.train(harness.CENSUS, self.out("fp32"), 1, 1)
        for format in ("fp16", "bf16"):
            sets = {"model.weights": format}
            one = harness.train(harness.CENSUS, self.out(format), 1, 1, sets)
            more = harness.train(harness.CENSUS, self.out(f"{format}_3"), 3, 1, sets)
            harness.figure(f"{format}: AUC {one['eval_auc']:.4f} (fp32 {whole['eval_auc']:.4f})")
            self.assertAlmostEqual(one["eval_auc"], whole["eval_auc"], delta=0.002)
            self.assertEqual(one["digest"], more["digest"])
            self.assertNotEqual(one["digest"], whole["digest"])

    def values_exchanged(self, out, workers):
        """Bytes of rows pulled and of gradients pushed by all workers of a run, from their logs."""
        found = [re.search(r"(\d+) bytes of rows pulled, (\d+) bytes of gradients pushed",
                           (out / f"log/worker_{rank}.log").read_text()) for rank in range(workers)]
        return [sum(int(match.group(i)) for match in found) for i in (1, 2)]

    def test_16_bits_on_the_wire(self):
        """fp16 and bf16 between workers and servers: half the bytes a step, the AUC of fp32 within
        0.001, and one digest a format for every number of servers and threads, transport and
        repetition."""
        runs = {}
        for wire in ("fp32", "fp16", "bf16"):
            # Without rows read ahead a step moves the same rows each time.
            sets = {"parallel.wire": wire, "train.lookahead": 0}
            summary = harness.cluster(harness.CENSUS, self.out(wire), 2, 2, sets)
            rows, gradients = self.values_exchanged(self.out(wire), 2)
            runs[wire] = (summary, rows, gradients)
            whole = runs["fp32"]
            harness.figure(f"{wire}: AUC {summary['eval_auc']:.5f}, bytes a step: rows "
                           f"{rows / summary['steps']:,.0f} ({rows / whole[1]:.3f} of fp32), gradients "
                           f"{gradients / summary['steps']:,.0f} ({gradients / whole[2]:.3f})")
            if wire == "fp32":
                continue
            self.assertAlmostEqual(summary["eval_auc"], whole[0]["eval_auc"], delta=0.001)
            # Rows are also read to be scored, in 32 bits.
            self.assertAlmostEqual(gradients / whole[2], 0.5, delta=0.02)
            self.assertAlmostEqual(rows / whole[1], 0.5, delta=0.02)
            self.assertNotEqual(summary["digest"], whole[0]["digest"])
            others = [
                harness.cluster(harness.CENSUS, self.out(f"{wire}_ipc"), 1, 2, {"parallel.wire": wire},
                                extra=["--transport=ipc"]),
                harness.train(harness.CENSUS, self.out(f"{wire}_one"), 3, 2, {"parallel.wire": wire},
                              extra=["--threads=1"]),
                harness.train(harness.CENSUS, self.out(f"{wire}_two"), 1, 2, {"parallel.wire": wire},
                              extra=["--threads=4"]),
            ]
            self.assertEqual({run["digest"] for run in others}, {summary["digest"]})

    @staticmethod
    def auc(scores, labels):
        order = sorted(zip(scores, labels))
        rank_sum, i = 0.0, 0
        while i < len(order):
            j = i
            while j < len(order) and order[j][0] == order[i][0]:
                j += 1
            rank_sum += sum(label for _, label in order[i:j]) * (i + 1 + j) / 2
            i = j
        positives = sum(labels)
        return (rank_sum - positives * (positives + 1) / 2) / (positives * (len(order) - positives))


if __name__ == "__main__":
    harness.main()
