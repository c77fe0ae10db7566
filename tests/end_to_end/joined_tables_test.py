"""Tests that tables which share rows give the answer of tables that do not: for every recipe with a wide and a
deep part, over servers, evictions, deltas, resumes, replicas and the disk tier."""
import json
import shutil

import harness
from harness import APART

FOLDER = harness.ROOT / "examples" / "recipes"
RECIPES = ("wide_deep", "fm", "deepfm", "nfm", "xdeepfm", "fibinet")


class JoinedTables(harness.Case):
    def setUp(self):
        super().setUp()
        self.data = self.out("data")
        harness.generate(self.data, rows=20480, eval_rows=64, vocabulary=20000, zipf=1.05, seed=3)
        job = harness.reference_job(self.data, batch_size=512, eval_each_epoch=False)
        job["model"]["hidden"] = [8]
        job["checkpoint"] = {"keep": 9}
        self.job = harness.write_job(self.out("job.json"), job)

    def digest(self, name, servers=1, workers=1, sets=None, job=None):
        return harness.train(job or self.job, self.out(name), servers, workers, sets)["digest"]

    def test_every_recipe(self):
        for recipe in RECIPES:
            job = FOLDER / f"{recipe}.json"
            self.assertEqual(json.loads(job.read_text())["model"]["type"], recipe)
            sets = {"train.max_steps": 20}
            found = {self.digest(f"{recipe}_{servers}_{workers}_{len(more)}", servers, workers,
                                 {**sets, **more, "train.micro_batches": 2 // workers}, job)
                     for servers, workers in ((1, 1), (3, 2)) for more in ({}, APART)}
            harness.figure(f"{recipe}: {found}")
            self.assertEqual(len(found), 1, recipe)

    def test_modes_and_pieces(self):
        """Copies of the model whose keys travel in lists of their own, and steps that do not wait."""
        for sets in ({"parallel.interleave_num": 3}, {"train.mode": "async", "train.lookahead": 0},
                     {"parallel.wire": "bf16", "model.weights": "bf16"}, {"train.clip_norm": 0.5},
                     {"model.slice_mode": "table_row_slice"}):
            name = next(iter(sets))
            self.assertEqual(self.digest(name + "joined", 2, 1, sets),
                             self.digest(name + "apart", 2, 1, {**sets, **APART}), sets)

    def test_evictions_deltas_and_resumes(self):
        """Each goes on from what the other has saved, with another number of servers."""
        model = json.loads(self.job.read_text())
        model["model"]["policy"] = {"evict_after_steps": 6, "max_rows": 20000}
        job = harness.write_job(self.out("evicting.json"), model)
        whole = harness.train(job, self.out("whole"), 2, 1, APART)
        self.assertGreater(whole["rows_evicted"], 0)
        sets = {"checkpoint.delta_every_steps": 3, "checkpoint.every_steps": 15}
        for first, then in (({}, APART), (APART, {})):
            out = self.out(f"first{len(first)}")
            self.assertEqual(harness.train(job, out, 3, 1, {**sets, **first})["digest"], whole["digest"])
            newest = sorted((out / "checkpoint").iterdir())
            for folder in newest[-2:]:  # As killed behind what is left.
                shutil.rmtree(folder)
            resumed = harness.train(job, out, 1, 1, {**sets, **then})
            harness.figure(f"resumed from {resumed['resumed_from']}: {resumed['digest']}")
            self.assertEqual(resumed["digest"], whole["digest"])
            self.assertEqual(resumed["rows"], whole["rows"])

    def test_replicas_and_disk(self):
        """Copies at a second server, and rows beyond the memory of one."""
        apart = harness.train(self.job, self.out("apart"), 1, 1, APART)
        copied = harness.cluster(self.job, self.out("copied"), 2, 1, {"cluster.replicas": 1})
        self.assertEqual(copied["digest"], apart["digest"])
        log = (self.out("copied") / "log" / "server_0.log").read_text()
        self.assertIn(harness.JOINED, log)
        tiered = harness.cluster(self.job, self.out("tiered"), 1, 1, {"cluster.memory_limit": "64MiB"})
        self.assertEqual(tiered["digest"], apart["digest"])
        self.assertEqual(tiered["rows"], apart["rows"])
        harness.figure(f"{tiered['rows']} rows, {tiered['rows_on_disk']} of them on disk, "
                       f"{tiered['rows_fetched']} came back")

    def test_contradicting_policies_are_told(self):
        counted = harness.cluster(self.job, self.out("counted"), 1, 1,
                                  {"model.policy.admit_after": 2, "train.max_steps": 3})
        self.assertEqual(counted["steps"], 3)
        log = (self.out("counted") / "log" / "server_0.log").read_text()
        self.assertIn("tables 'wide' and 'deep' are read by the same features, but keep their rows apart", log)


if __name__ == "__main__":
    harness.main()
