"""Tests that sync training gives one answer: for any number of servers and threads, and for N workers as for
one process that splits its batch into N parts."""
import itertools
import json
import math
import random

import harness


class SameAnswer(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        import tempfile, pathlib
        cls.data = pathlib.Path(tempfile.mkdtemp(prefix="hdps_data_"))
        harness.generate(cls.data, rows=51200, eval_rows=2048, vocabulary=20000, zipf=1.05, seed=1)
        cls.job = harness.write_job(cls.data / "job.json", harness.reference_job(cls.data))

    @classmethod
    def tearDownClass(cls):
        import shutil
        shutil.rmtree(cls.data, ignore_errors=True)

    def digest(self, name, servers=1, workers=1, extra=(), **sets):
        return harness.train(self.job, self.out(name), servers, workers,
                             {k.replace("__", "."): v for k, v in sets.items()}, extra=extra)["digest"]

    def test_servers_and_workers(self):
        """50 steps of REF-S for every N x S; E0 along S, and against one process with N parts."""
        for workers in (1, 2, 4):
            parts = self.digest(f"parts{workers}", 1, 1, train__micro_batches=workers)
            found = {}
            for servers in (1, 2, 3):
                found[servers] = self.digest(f"n{workers}s{servers}", servers, workers)
            harness.figure(f"workers {workers}: servers 1,2,3 -> {[d[:12] for d in found.values()]}, "
                  f"one process with {workers} parts -> {parts[:12]}")
            self.assertEqual(set(found.values()), {parts})

    def test_losses_and_what_the_reader_makes(self):
        """Weights, pairs of groups, several tasks and made negatives: N workers are N parts, and the figures
        of their evaluations are the same to the last bit (E0)."""
        rows = self.out("rows.csv")
        draw = random.Random(3)
        with open(rows, "w") as file:
            for _ in range(3000):
                user, item = draw.randrange(50), draw.randrange(40)
                click = int(draw.random() < 1 / (1 + 2.7 ** (user % 5 - item % 7 / 2)))
                file.write(f"{click},{user % 5 + item % 7 / 2},u{user},i{item},g{item % 5},"
                           f"{draw.choice((0.5, 1, 2))},u{user}\n")
        columns = [{"name": "click", "type": "label"}, {"name": "stars", "type": "skip"}, {"name": "user"},
                   {"name": "item"}, {"name": "genre"}, {"name": "weight", "type": "weight"},
                   {"name": "of", "type": "group"}]
        ranks = '["auc","pr_auc","group_auc","hr@5","ndcg@5"]'
        cases = {
            "weights": {"train.metrics": '["auc","logloss","ece","normalized_entropy"]',
                        "model.positive_weight": 2},
            "bpr": {"model.loss": "bpr", "train.metrics": ranks},
            "squared_error": {"model.loss": "squared_error", "data.columns.0.type": "skip",
                              "data.columns.1.type": "label"},
            "negatives": {"data.item_features": '["item","genre"]', "data.negatives": '{"per_positive":3}',
                          "train.metrics": ranks},
            "tasks": {"data.columns.1.type": "label", "model.type": "graph",
                      "model.tables": '[{"name":"t","dim":8}]',
                      "model.layers": '[{"name":"e","kind":"embedding","table":"t"},'
                                      '{"name":"z","inputs":["e"],"units":2}]',
                      "model.tasks": '[{"label":"click"},{"label":"stars","loss":"squared_error","weight":0.5}]',
                      "train.metrics": '["auc","logloss","rmse","mae","group_auc"]'},
        }
        job = harness.write_job(self.out("job.json"), {
            "data": {"train": [str(rows)], "eval": [str(rows)], "columns": columns},
            "model": {"type": "deepfm", "embedding_dim": 8, "hidden": [16]},
            "train": {"batch_size": 250, "epochs": 2}})
        for name, sets in cases.items():
            parts = harness.train(job, self.out(name + "1"), 1, 1, {**sets, "train.micro_batches": 3})
            told = parts["eval_metrics"]
            harness.figure(f"{name}: {told}")
            self.assertTrue(all(math.isfinite(value) for value in told.values()), told)
            for servers in (1, 2):
                workers = harness.train(job, self.out(f"{name}3{servers}"), servers, 3, sets)
                self.assertEqual(workers["digest"], parts["digest"], name)
                self.assertEqual(workers["eval_metrics"], told, name)

    def test_bad_rows_keep_their_places(self):
        """What is passed over leaves its part of the batch smaller, and moves no other row (E0)."""
        draw = random.Random(5)
        rows = [f"{draw.randrange(2)},u{draw.randrange(50)},i{draw.randrange(40)}" for _ in range(1000)]
        for at in (3, 4, 77, 500, 998):
            rows[at] = "2,u1"
        data = self.out("rows.csv")
        data.write_text("\n".join(rows) + "\n")
        job = harness.write_job(self.out("job.json"), {
            "data": {"train": [str(data)], "max_bad_rows": 5, "shuffle_rows": 0,
                     "columns": [{"name": "click", "type": "label"}, {"name": "user"}, {"name": "item"}]},
            "model": {"type": "deepfm", "embedding_dim": 8, "hidden": [16], "dropout": 0.2},
            "train": {"batch_size": 100}})
        for parts in (2, 3):
            one = harness.train(job, self.out(f"parts{parts}"), 1, 1, {"train.micro_batches": parts})
            many = harness.train(job, self.out(f"workers{parts}"), 2, parts)
            self.assertEqual((one["examples"], one["bad_rows"], one["digest"]),
                             (many["examples"], many["bad_rows"], many["digest"]))

    def test_lookahead(self):
        """Rows asked for ahead of their turn are the rows asked for in time (E0), whoever holds them
        and whichever way the dense gradients go."""
        ways = itertools.product((1, 2, 4), (1, 2), ("servers", "allreduce"))
        for workers, parts, exchange in harness.third_of(ways, "numbers of workers, parts and ways to ask ahead"):
            found = set()
            for lookahead in (0, 1, 2, 4):
                servers = 1 + (lookahead + workers) % 3
                found.add(self.digest(f"l{workers}{parts}{exchange}{lookahead}", servers, workers,
                                      train__lookahead=lookahead, train__micro_batches=parts,
                                      parallel__dense_exchange=exchange))
            harness.figure(f"workers {workers} of {parts} parts, dense by {exchange}: ahead 0, 1, 2, 4 -> "
                           f"{[d[:12] for d in found]}")
            self.assertEqual(len(found), 1)

    def test_recipes(self):
        """Two workers, over any servers and threads, are one process with two parts (E0): a few steps of
        each recipe."""
        recipes = ("fm", "deepfm", "nfm", "pnn", "xdeepfm", "fibinet", "dcn_v2", "dcn_mix", "dlrm")
        for recipe in harness.third_of(recipes, "recipes"):
            sets = {"model__type": recipe, "train__max_steps": 6}
            found = {self.digest(f"{recipe}_parts", 1, 1, train__micro_batches=2, **sets),
                     self.digest(f"{recipe}_s1", 1, 2, extra=["--threads=1"], **sets),
                     self.digest(f"{recipe}_s3", 3, 2, extra=["--threads=3"], **sets)}
            harness.figure(f"{recipe}: {[d[:12] for d in found]}")
            self.assertEqual(len(found), 1, recipe)

    def test_one_shard(self):
        """The dense weights then come in the order of their keys, as rows do (E0)."""
        found = {self.digest(f"o{ahead}{exchange}", 1, 1, cluster__shards=1, train__lookahead=ahead,
                             parallel__dense_exchange=exchange)
                 for ahead, exchange in itertools.product((0, 1), ("servers", "allreduce"))}
        self.assertEqual(len(found), 1)

    def test_an_exchange_that_is_chosen(self):
        """Under auto_parallel each process chooses it alike; it is told, printed, and kept by a resume (E0)."""
        said = self.digest("said", 2, 2, train__max_steps=6)
        auto = {"parallel.parallel_mode": "auto_parallel", "parallel.device_num": 2}
        out = self.out("chosen")
        chosen = harness.cluster(self.job, out, 2, 2, {**auto, "train.max_steps": 3})
        run = json.loads((out / "job_as_run.json").read_text())["parallel"]
        self.assertIn(run["dense_exchange"], ("servers", "allreduce"))
        self.assertEqual(run["parallel_mode"], "auto_parallel")
        again = harness.run([harness.program("hdps"), "train", f"--job={self.job}", f"--out={out}", "--servers=2",
                             "--workers=2", *harness.settings({**auto, "train.max_steps": 6})])
        self.assertIn(f"chose parallel.dense_exchange={run['dense_exchange']}: ", again.stderr)
        self.assertEqual(json.loads((out / "job_as_run.json").read_text())["parallel"], run)
        self.assertEqual((chosen["steps"], harness.summary_of(out)["digest"]), (3, said))
        del auto["parallel.device_num"]
        done = harness.run([harness.program("hdps-worker"), f"--job={self.job}", "--scheduler=tcp://127.0.0.1:1",
                            *harness.settings(auto)], expect=2)
        self.assertIn("give parallel.device_num", done.stderr)

    def test_tables_that_are_placed(self):
        """Under auto_parallel members that count keys choose alike how many rows workers keep (E0)."""
        said = self.digest("said", 2, 2, train__max_steps=4)
        constants = self.out("constants.json")
        constants.write_text(json.dumps({"results": [
            {"case": "products_64x64_batch64", "figure": "rate", "value": 100},
            {"case": "socket_pull", "figure": "float", "value": 100}]}))  # Rows from servers are slow.
        columns = [f"C{c}" for c in range(1, 27)]
        out = self.out("placed")
        placed = harness.cluster(self.job, out, 2, 2, {
            "parallel.parallel_mode": "auto_parallel", "parallel.device_num": 2, "train.max_steps": 4,
            "parallel.constants": str(constants), "data.distinct": json.dumps(dict.fromkeys(columns, 20000)),
            "data.distinct_half": json.dumps(dict.fromkeys(columns, 90))})
        kept = [table["vocab_cache_size"] for table in
                json.loads((out / "job_as_run.json").read_text())["model"]["tables"]]
        harness.figure(f"rows that each worker keeps, by data.distinct: {kept}")
        self.assertGreaterEqual(min(kept), 100)
        self.assertEqual(placed["digest"], said)

    def test_two_runs_threads_and_daemons(self):
        """A second run, other numbers of threads and real processes change nothing."""
        digests = {
            "first": self.digest("a", 2, 2),
            "second": self.digest("b", 2, 2),
            "one thread": self.digest("c", 2, 2, extra=["--threads=1"]),
            "four threads": self.digest("d", 2, 2, extra=["--threads=4"]),
            "daemons, tcp": harness.cluster(self.job, self.out("e"), 2, 2)["digest"],
            "daemons, ipc": harness.cluster(self.job, self.out("f"), 3, 2,
                                            extra=["--transport=ipc"])["digest"],
        }
        for name, digest in digests.items():
            harness.figure(f"{name:14} {digest}")
        self.assertEqual(len(set(digests.values())), 1)

    def test_sixteen_bits_through_shared_memory(self):
        """Values of 16 bits that are made in the memory of their receiver, and those that are not."""
        for wire in ("fp16", "bf16"):
            sets = {"parallel.wire": wire}
            found = {"one process": self.digest(f"{wire}_one", 3, 2, parallel__wire=wire)}
            for servers, transport in ((1, "tcp"), (2, "ipc")):
                out = self.out(f"{wire}_{transport}")
                found[transport] = harness.cluster(self.job, out, servers, 2, sets,
                                                   extra=[f"--transport={transport}"])["digest"]
                for member in ("server_0", "worker_0"):
                    log = (out / f"log/{member}.log").read_text()
                    self.assertIn("come through shared memory", log, f"{member} over {transport}")
            harness.figure(f"{wire}: {[f'{name} {digest[:12]}' for name, digest in found.items()]}")
            self.assertEqual(len(set(found.values())), 1)

    def test_another_seed_is_another_answer(self):
        self.assertNotEqual(self.digest("one"), self.digest("two", seed=2))

    def largest_difference(self, a, b):
        done = harness.run([harness.program("hdps"), "diff", "--which=newest", self.out(a), self.out(b)])
        line = [l for l in done.stdout.splitlines() if l.startswith("largest difference")][0]
        return float(line.split()[2])

    def test_whole_batch_within_1e_6(self):
        """N workers against one process with the whole batch, 50 steps (E1)."""
        self.digest("single")
        loss = harness.summary_of(self.out("single"))["train_logloss"]
        for workers in (2, 3, 4, 8):
            self.digest(f"w{workers}", 2, workers)
            difference = self.largest_difference("single", f"w{workers}")
            loss_difference = abs(harness.summary_of(self.out(f"w{workers}"))["train_logloss"] - loss)
            harness.figure(f"{workers} workers: parameters differ by {difference:.3g}, loss by {loss_difference:.3g}")
            self.assertLessEqual(difference, 1e-6)
            self.assertLessEqual(loss_difference, 1e-6)

    def test_copies_within_1e_6(self):
        """Copies of the model, whose pulls and pushes are split, against the whole batch, 50 steps (E1). How
        rows are asked for, and from how many servers, changes no bit."""
        self.digest("single")
        for copies in (2, 3, 4):
            first = self.digest(f"copies{copies}", 1, 1, parallel__interleave_num=copies)
            ahead = self.digest(f"ahead{copies}", 2, 1, parallel__interleave_num=copies, train__lookahead=2)
            difference = self.largest_difference("single", f"copies{copies}")
            harness.figure(f"{copies} copies: parameters differ by {difference:.3g}")
            self.assertEqual(first, ahead)
            self.assertLessEqual(difference, 1e-6)

    def test_gradients_mean_and_sum(self):
        """gradients_mean = false with N workers and SGD is a learning rate N times as large (E1)."""
        # The mean of workers' means is the mean of all rows where each worker has as many of them.
        job = harness.reference_job(self.data, batch_size=960, max_steps=50)
        for workers in (2, 3, 4, 8):
            for name, rate, value in (("sum", 0.01, False), ("mean", 0.01 * workers, True)):
                for which in ("wide_optimizer", "deep_optimizer", "dense_optimizer"):
                    job["model"][which] = {"kind": "sgd", "learning_rate": rate}
                job["parallel"]["gradients_mean"] = value
                path = harness.write_job(self.out(f"{name}.json"), job)
                harness.train(path, self.out(f"{name}{workers}"), 1, workers)
            difference = self.largest_difference(f"sum{workers}", f"mean{workers}")
            harness.figure(f"{workers} workers: sum at lr against mean at {workers} lr: {difference:.3g}")
            self.assertLessEqual(difference, 1e-6)

    def test_sums_by_the_library(self):
        """Gloo's own allreduce adds in another order, and keeps one answer for all workers (E1)."""
        sets = {"parallel__dense_exchange": "allreduce", "parallel__collective": "gloo"}
        ordered = self.digest("ordered", 1, 3, **sets)
        library = self.digest("library", 2, 3, parallel__reduction="library", **sets)
        difference = self.largest_difference("ordered", "library")
        harness.figure(f"3 workers: Gloo's own sums against sums in order differ by {difference:.3g}")
        self.assertNotEqual(library, ordered)
        self.assertLessEqual(difference, 1e-6)

    def test_ragged_and_cross_batch(self):
        """Ragged steps: dividing by all rows matches one process; per-worker means do not."""
        ragged = {"train.batch_size": 683}
        harness.train(self.job, self.out("single"), 1, 1, ragged)
        harness.train(self.job, self.out("global"), 2, 3, ragged)
        harness.train(self.job, self.out("local"), 2, 3, {**ragged, "parallel.cross_batch": True})
        same, other = (self.largest_difference("single", name) for name in ("global", "local"))
        harness.figure(f"683 rows over 3 workers: over all rows {same:.3g}, per-worker means {other:.3g}")
        self.assertLessEqual(same, 1e-6)
        self.assertGreater(other, 1e-5)

    def test_parts_that_differ(self):
        """Workers of 700, 200 and 124 rows: dividing by all rows matches one process, whichever way dense
        gradients go, with the masks of the rows' positions; per-worker means do not."""
        masks = {"model.dropout": 0.2}
        parts = {"data.parts": [700, 200, 124], **masks}
        harness.train(self.job, self.out("single"), 1, 1, masks)
        harness.train(self.job, self.out("global"), 2, 3, parts)
        harness.train(self.job, self.out("reduced"), 1, 3, {**parts, "parallel.dense_exchange": "allreduce"})
        harness.train(self.job, self.out("local"), 2, 3, {**parts, "parallel.cross_batch": True})
        same, reduced, other = (self.largest_difference("single", name) for name in ("global", "reduced", "local"))
        harness.figure(f"700, 200, 124 rows: over all rows {same:.3g}, by allreduce {reduced:.3g}, "
                       f"per-worker means {other:.3g}")
        self.assertLessEqual(same, 1e-6)
        self.assertLessEqual(reduced, 1e-6)
        self.assertGreater(other, 1e-5)
        for workers in (1, 2, 4):
            done = harness.train(self.job, self.out(f"refused{workers}"), 1, workers, parts, expect=2)
            self.assertIn(f"data.parts has 3 numbers, but the job is started with --workers={workers}", done.stderr)

    def test_mean_of_local_means_by_hand(self):
        """A model of one weight for each of two numbers and five values, against the same steps in Python: the mean
        over all rows, and with cross_batch the mean of the means of 700, 200 and 124 rows."""
        draw, sizes, rate, steps = random.Random(9), (700, 200, 124), 0.5, 5
        rows = [(draw.randrange(2), draw.uniform(-1, 1), draw.uniform(-1, 1), draw.randrange(5))
                for _ in range(sum(sizes) * steps)]
        rows = [(int(draw.random() < 0.2 + 0.5 * (b > 0) + 0.04 * c), a, b, c) for _, a, b, c in rows]
        self.out("rows.csv").write_text("".join(f"{y},{a},{b},v{c}\n" for y, a, b, c in rows))
        probes = [(0, 1, 0, 0), (0, 0, 1, 0), *((0, 0, 0, c) for c in range(5))]
        self.out("probes.csv").write_text("".join(f"{y},{a},{b},v{c}\n" for y, a, b, c in probes))
        sgd = {"kind": "sgd", "learning_rate": rate}
        job = harness.write_job(self.out("job.json"), {
            "data": {"train": ["rows.csv"], "shuffle_rows": 0, "parts": sizes,
                     "columns": [{"name": "y", "type": "label"}, {"name": "a", "type": "numeric"},
                                 {"name": "b", "type": "numeric"}, {"name": "c"}]},
            "model": {"type": "graph", "device": "cpu", "dense_optimizer": sgd,
                      "tables": [{"name": "t", "dim": 1, "optimizer": sgd, "init": {"kind": "zeros"}}],
                      "layers": [{"name": "x", "kind": "numeric"},
                                 {"name": "d", "inputs": ["x"], "units": 1, "init": "zeros"},
                                 {"name": "e", "kind": "embedding", "table": "t", "combine": "sum"},
                                 {"name": "z", "kind": "sum", "inputs": ["d", "e"]}]},
            "train": {"batch_size": sum(sizes)}})

        def by_hand(local):
            weights = [0.0] * 8  # Of a, of b, the bias, of the five values.

            def inputs(a, b, c):
                return {0: a, 1: b, 2: 1.0, 3 + c: 1.0}

            for step in range(steps):
                begin, change = step * sum(sizes), [0.0] * 8
                for size in sizes:
                    share = 1 / size / len(sizes) if local else 1 / sum(sizes)
                    for y, a, b, c in rows[begin:begin + size]:
                        at = inputs(a, b, c)
                        slope = 1 / (1 + math.exp(-sum(weights[i] * x for i, x in at.items()))) - y
                        for i, x in at.items():
                            change[i] += share * slope * x
                    begin += size
                weights = [w - rate * g for w, g in zip(weights, change)]
            return [sum(weights[i] * x for i, x in inputs(a, b, c).items()) for _, a, b, c in probes]

        found = {}
        for name, sets in (("global", {}), ("local", {"parallel.cross_batch": True})):
            harness.train(job, self.out(name), 2, 3, sets)
            said = harness.run([harness.program("hdps"), "predict", f"--checkpoint={self.out(name)}",
                                f"--data={self.out('probes.csv')}"]).stdout
            found[name] = [math.log(p / (1 - p)) for p in map(float, said.split())]
        for name, local in (("global", False), ("local", True)):
            apart = max(abs(a - b) for a, b in zip(found[name], by_hand(local)))
            harness.figure(f"logits of {name} means, from those by hand: {apart:.3g}")
            self.assertLessEqual(apart, 1e-6)
        apart = max(abs(a - b) for a, b in zip(found["local"], found["global"]))
        harness.figure(f"logits of local means from those of global ones: {apart:.3g}")
        self.assertGreater(apart, 1e-5)

    def test_full_batch(self):
        """Every worker reads everything: the mean over copies is the mean (E1)."""
        harness.train(self.job, self.out("split"), 1, 2)
        harness.train(self.job, self.out("full"), 1, 2, {"parallel.dataset_strategy": "full_batch"})
        difference = self.largest_difference("split", "full")
        harness.figure(f"full_batch against data_parallel: {difference:.3g}")
        self.assertLessEqual(difference, 1e-6)

    def test_dense_by_allreduce(self):
        """Dense gradients by allreduce against dense gradients through the servers (E1)."""
        for workers in (1, 2, 3):
            self.digest(f"servers{workers}", 2, workers)
            self.digest(f"allreduce{workers}", 2, workers, parallel__dense_exchange="allreduce")
            difference = self.largest_difference(f"servers{workers}", f"allreduce{workers}")
            harness.figure(f"{workers} workers: allreduce against servers differ by {difference:.3g}")
            self.assertLessEqual(difference, 1e-6)

    def test_one_async_worker_is_sync(self):
        self.assertEqual(self.digest("sync"), self.digest("async", train__mode="async"))


if __name__ == "__main__":
    harness.main()
