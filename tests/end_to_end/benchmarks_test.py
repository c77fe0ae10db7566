"""Runs one case of every benchmark of hdps-bench, and checks that its figures are usable."""
import json
import math

import harness

# The quickest case of each that goes through most of its code; no figure is judged.
CASES = {
    "cache": "uniform_sum_of_rows",
    "checkpoint": "adagrad_dim16",
    "dense_exchange": "",
    "disk_tier": "small_mlp_4_times",
    "end_to_end": "peers_set_cpu_sync_inproc",
    "http": "post_64",
    "flat_rows": "dim16",
    "interleave": "round_trips",
    "lookahead": "slow_rows",
    "model": "small_mlp_dim16",
    "outside": "",
    "plan": "dim16_small_1s_1w_async",
    "pullpush": "tcp_1s_1w_dim16_batch1024",
    "reader": "criteo_tsv_in_order",
    "recovery": "server_killed_then_resumed",
    "reduction": "2_ranks_1KiB",
    "request_forms": "",
    "scores": "wide_deep_dim4",
    "strategies": "data_parallel",
    "table": "sgd_dim16",
    "telemetry": "",
    "updates": "s27",
    "wire": "tcp_1MiB",
}
SHARE = {"pullpush", "reader", "table"}  # That each change is judged by.
COVERED = {"constants",  # plan measures them first.
           "device"}  # Needs a GPU: cuda_bench_on_cpu_test runs it on stand-ins.


class Benchmarks(harness.Case):
    def bench(self, name, case, *flags):
        out = self.out(f"{name}.json")
        harness.run([harness.program("hdps-bench"), name, f"--case={case}", "--repeats=1", f"--json={out}",
                     f"--scratch={self.out('')}", *flags])
        results = json.loads(out.read_text())["results"]
        self.assertTrue(results, name)
        for r in results:
            for value in (r["value"], *r["samples"], r.get("yardstick_value", 1), r.get("ratio", 1)):
                self.assertTrue(math.isfinite(value) and value >= 0, r)
        beside = sum("ratio" in r for r in results)
        harness.figure(f"{name}, {case}: {len(results)} figures, {beside} beside a yardstick")

    def test_each_runs(self):
        listed = harness.run([harness.program("hdps-bench"), "--list"]).stdout
        names = {line.split()[0] for line in listed.splitlines() if line.startswith("  ")}
        self.assertEqual(names, set(CASES) | COVERED, "a benchmark without a case here")
        chosen = harness.share(SHARE, set(CASES), f"{len(CASES) - len(SHARE)} of {len(CASES)} benchmarks")
        for name, case in CASES.items():
            if name not in chosen:
                continue
            with self.subTest(name):
                self.bench(name, case, "--quick")

    @harness.at_night
    def test_costs_rank_placements_as_steps_do(self):
        """Seventeen placements of one job: Spearman's rank correlation of predicted and measured steps."""
        out = self.out("placements.json")
        harness.run([harness.program("hdps-bench"), "strategies", "--repeats=3", f"--json={out}",
                     f"--scratch={self.out('')}"], timeout=3000)
        results = json.loads(out.read_text())["results"]
        rank = next(r["value"] for r in results if r["case"] == "all")
        foreign = max(r["foreign_cores"] for r in results)
        placements = sum(r["figure"] == "measured" for r in results)
        harness.figure(f"{placements} placements: Spearman {rank:.2f}, others used {foreign:.1f} cores")
        self.assertGreaterEqual(placements, 12)
        if foreign > 0.2:
            self.skipTest("other programs kept cores busy, and steps of placements differ by less than that")
        self.assertGreaterEqual(rank, 0.8)

    @harness.at_night
    def test_index_that_was_growing(self):
        """Of 20 M rows the indexes of some shards are still growing when the walk looks where they are."""
        self.bench("table", "rowwise_adagrad_dim16_20M_zipf_1t")


if __name__ == "__main__":
    harness.main()
