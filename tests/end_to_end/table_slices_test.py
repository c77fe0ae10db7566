"""Tests tables cut over servers by hash, range, field and column: the same training, checkpoints and predictions."""
import json

import harness

LAYOUTS = {
    "batch": {"model.slice_mode": "batch_slice"},
    "row": {"model.slice_mode": "table_row_slice"},
    "field": {"model.slice_mode": "field_slice"},
    "manual": {"model.slice_mode": "field_slice", "model.manual_shapes": "[20,2,17]"},
    "column": {"model.slice_mode": "table_column_slice", "model.column_slices": "4"},
}


class TableSlices(harness.Case):
    def setUp(self):
        super().setUp()
        data = harness.generate(self.out("log"), rows=12800, eval_rows=1000, numeric=4, categorical=26,
                                vocabulary=200, seed=9)
        job = harness.reference_job(data, batch_size=256, max_steps=50, eval_each_epoch=False)
        job["data"] = self.columns(data)
        self.job = harness.write_job(self.out("job.json"), job)

    def columns(self, data):
        """39 sparse features, of which 13 are crosses of two columns."""
        columns = [{"name": "label", "type": "label"}]
        columns += [{"name": f"I{i}", "type": "numeric"} for i in range(1, 14)]
        columns += [{"name": f"C{c}"} for c in range(1, 27)]
        features = [{"name": f"X{c}", "from": [f"C{c}", f"C{c + 13}"], "hash_buckets": 300}
                    for c in range(1, 14)]
        return {"format": "csv", "delimiter": "\t", "columns": columns, "features": features,
                "train": [f"{data}/train.tsv"], "eval": [f"{data}/eval.tsv"]}

    def train(self, name, layout, servers=1, workers=1, **sets):
        return harness.train(self.job, self.out(name), servers, workers, {**LAYOUTS[layout], **sets})

    def predictions(self, name, layout, sets=None):
        out = self.out(f"{name}.txt")
        done = harness.run([harness.program("hdps"), "predict", f"--job={self.job}",
                            f"--checkpoint={self.out(name)}/checkpoint", f"--data={self.out('log')}/eval.tsv",
                            *harness.merged_settings({**LAYOUTS[layout], **(sets or {})})])
        out.write_text(done.stdout)
        return [float(line) for line in done.stdout.split()]

    def test_training_is_the_same_for_any_layout_and_number_of_servers(self):
        digests, losses, predicted = {}, {}, {}
        for layout in LAYOUTS:
            for servers in (1, 2, 3):
                name = f"{layout}_{servers}"
                summary = self.train(name, layout, servers)
                digests[name] = summary["digest"]
                losses[name] = summary["train_logloss"]
            predicted[layout] = self.predictions(f"{layout}_3", layout)
        whole = {digest for name, digest in digests.items() if not name.startswith("column")}
        self.assertEqual(len(whole), 1, digests)
        for layout in LAYOUTS:
            self.assertEqual(len({digests[f"{layout}_{servers}"] for servers in (1, 2, 3)}), 1)
            self.assertEqual(len(predicted[layout]), 1000)
        for layout in ("row", "field", "manual"):
            self.assertEqual(predicted[layout], predicted["batch"])
        difference = max(abs(a - b) for a, b in zip(predicted["column"], predicted["batch"]))
        harness.figure(f"four layouts over 1, 2 and 3 servers: one digest without columns, whose loss differs by "
                       f"{abs(losses['column_1'] - losses['batch_1']):.3g} and whose predictions by {difference:.3g}")
        self.assertLessEqual(abs(losses["column_1"] - losses["batch_1"]), 1e-6)
        self.assertLessEqual(difference, 1e-6)

    def test_workers_are_parts(self):
        for layout in ("field", "column"):
            two = self.train(f"{layout}_two", layout, 2, 2)
            parts = self.train(f"{layout}_parts", layout, 1, 1, **{"train.micro_batches": "2"})
            self.assertEqual(two["digest"], parts["digest"], layout)

    def test_features_with_a_dim_of_their_own(self):
        """Tables of 4, 16 and 32 columns: workers are parts, whatever the cut."""
        dims = {"model.feature_dims": '{"C1":4,"X3":4,"C2":32}'}
        whole = self.train("whole", "batch", 1, 1, **dims, **{"train.micro_batches": "2"})
        for layout in ("batch", "field"):
            self.assertEqual(self.train(f"{layout}_dims", layout, 3, 2, **dims)["digest"], whole["digest"])
        self.assertEqual(len(self.predictions("batch_dims", "batch", dims)), 1000)

    def test_norms_penalties_lookahead_and_sixteen_bits(self):
        """What looks at all rows of a step, or at them ahead of time."""
        cases = ({"train.clip_norm": "0.05"}, {"train.clip_value": "0.001", "model.deep_loss_l2": "0.01"},
                 {"train.lookahead": "1"}, {"parallel.wire": "bf16"})
        for number, sets in enumerate(cases):
            batch, field, column = (self.train(f"{layout}_{number}", layout, 2, **sets)
                                    for layout in ("batch", "field", "column"))
            self.assertEqual(batch["digest"], field["digest"], sets)
            self.assertLessEqual(abs(batch["train_logloss"] - column["train_logloss"]), 1e-6, sets)

    def test_a_checkpoint_loads_onto_any_number_of_servers(self):
        for layout in ("field", "column"):
            whole = self.train(f"{layout}_whole", layout, 2)
            name = f"{layout}_resumed"
            self.train(name, layout, 3, **{"train.max_steps": "20"})
            resumed = self.train(name, layout)
            self.assertEqual(resumed["digest"], whole["digest"], layout)

    def go_on(self, name, layout, servers, expect=0):
        return harness.train(self.job, self.out(name), servers, 1, LAYOUTS[layout], expect=expect,
                             extra=["--resume=changed"])

    def test_a_checkpoint_of_one_layout_loads_under_another(self):
        whole = self.train("whole", "batch")
        moves = (("batch", "row"), ("row", "batch"), ("field", "row"), ("batch", "column"), ("column", "batch"))
        for number, (before, after) in enumerate(moves):
            name = f"{before}_{after}"
            self.train(name, before, 1 + number % 3, **{"train.max_steps": "20"})
            resumed = self.go_on(name, after, 1 + (number + 1) % 3)
            self.assertEqual(resumed["resumed_from"], 20)
            self.assertIn("slice_mode", resumed["changes"][0]["setting"])
            if "column" in name:
                self.assertLessEqual(abs(resumed["train_logloss"] - whole["train_logloss"]), 1e-6, name)
            else:
                self.assertEqual(resumed["digest"], whole["digest"], name)
        done = harness.run([harness.program("hdps"), "diff", self.out("whole"), self.out("batch_column")], expect=2)
        self.assertIn("slice_mode batch_slice and table_column_slice", done.stderr)
        # What was saved since is of the new layout.
        self.assertEqual(self.train("batch_row", "row", **{"train.max_steps": "60"})["resumed_from"], 50)

    def test_a_layout_that_keys_do_not_tell_is_refused(self):
        self.train("batch", "batch", **{"train.max_steps": "20"})
        refused = self.go_on("batch", "field", 1, expect=2)
        self.assertIn("cannot go from slice_mode batch_slice to field_slice", refused.stderr)
        self.assertIn("does not tell it", refused.stderr)

    def test_a_checkpoint_is_scored_under_any_layout(self):
        for trained in ("batch", "field", "column"):
            self.train(trained, trained, **{"train.max_steps": "20"})
            own = self.predictions(trained, trained)
            for layout in LAYOUTS:
                self.assertEqual(self.predictions(trained, layout), own, (trained, layout))

    def test_servers_have_like_shares(self):
        """Bytes of the files of each server's shards: 32 shards over 2 servers."""
        for layout in ("batch", "row", "field", "column"):
            self.train(layout, layout, 2)
            shard_bytes = self.shard_bytes(layout)
            self.assertEqual(len(shard_bytes), 32)
            halves = [sum(shard_bytes[:16]), sum(shard_bytes[16:])]
            share = halves[0] / sum(halves)
            harness.figure(f"{layout}: {share:.3f} of the bytes at the first of two servers")
            # Crosses have more values than columns, and stand behind them.
            self.assertAlmostEqual(share, 0.5, delta=0.05 if layout == "field" else 0.025)

    def shard_bytes(self, name):
        manifest = sorted(self.out(name).glob("checkpoint/step_*/manifest.json"))[-1].read_text()
        return [file["bytes"] for file in json.loads(manifest)["checkpoint"]["files"]]


if __name__ == "__main__":
    harness.main()
