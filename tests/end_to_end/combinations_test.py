"""Tests with random combinations of settings that there is one answer: for any servers and threads, through
a stop and a resume, and for N workers as for one process that splits its batch into N parts."""
import collections
import itertools
import json
import os
import pathlib
import random
import shutil
import tempfile
import time

import harness
import random_jobs

# Each number from SEED on is a combination of its own. A change is judged by ten of the fifty, others each day.
COUNT = harness.asked("HDPS_COMBINATIONS_COUNT", 10, 50, "combinations")
SEED = int(os.environ.get("HDPS_COMBINATIONS_SEED", 1 + time.gmtime().tm_yday % 5 * 10 if harness.SHARE else 1))
REFUSED_MAX = 200  # Of draws for one combination.

look = random_jobs.look


def several_copies(job):
    return look(job, "parallel.interleave_num", 1) > 1 or look(job, "train.micro_batches", 1) > 1


def sixteen_bits(job):
    return look(job, "parallel.wire", "fp32") != "fp32" or look(job, "parallel.gradient_fp32_sync") is False


def another_sum(job):
    return look(job, "parallel.gradients_mean") is False or look(job, "parallel.cross_batch", False)


# Where N workers are not N parts to the last bit, by the pages that say so.
NOT_PARTS = (
    (several_copies, "workers whose batches are cut as well: sums of parts (parallel.md, copies and accumulation)"),
    (sixteen_bits, "only sums of parts are rounded (job_file.md, sixteen bits on the wire)"),
    (another_sum, "the means of workers are added (job_file.md, gradients_mean and cross_batch)"),
    (lambda job: look(job, "parallel.dataset_strategy"), "every worker reads all rows (job_file.md)"),
    (lambda job: look(job, "parallel.parallel_mode"), "layers are cut: rounding (parallel.md)"),
)


class Combinations(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.data = pathlib.Path(tempfile.mkdtemp(prefix="hdps_data_"))
        cls.addClassCleanup(shutil.rmtree, cls.data, ignore_errors=True)
        random_jobs.write_data(cls.data)

    def accepted(self, seed):
        """Jobs of the seed's sequence, in its order, each with a number of workers; None for one that is refused."""
        draw = random.Random(seed)
        while True:
            job, workers = random_jobs.draw_job(draw, self.data), draw.choice((1, 2, 2, 2, 3, 3))
            path = harness.write_job(self.out("job.json"), job)
            done = harness.run([harness.program("hdps"), "train", f"--job={path}", "--print_config"], expect=None)
            if done.returncode == 0:
                yield job, workers
            else:
                self.assertEqual(done.returncode, 2, f"{json.dumps(job, indent=1)}\n{done.stderr}")
                self.assertIn("job.json:", done.stderr, "a refusal names the place")
                yield None

    def answer(self, name, job, servers, workers, threads, sets=None):
        """What must be equal, and the whole summary; None where the first run is refused, as by its number of workers."""
        command = [harness.program("hdps"), "train", f"--job={harness.write_job(self.out('job.json'), job)}",
                   f"--out={self.out(name)}", f"--servers={servers}", f"--workers={workers}", f"--threads={threads}",
                   *harness.merged_settings(sets)]
        done = harness.run(command, expect=None)
        if done.returncode == 2 and name == "first":
            self.assertRegex(done.stderr, r"\w+\.\w+|--workers|--servers")
            return None
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        summary = harness.summary_of(self.out(name))
        return {key: summary[key] for key in ("digest", "steps", "examples", "eval_metrics")}, summary

    def stop_step(self, draw, job, steps):
        """A step before the end; where evaluations decide, one at which there is an evaluation anyway."""
        watched = look(job, "train.early_stop") or look(job, "train.plateau")
        every = job["train"]["eval_every_steps"] if watched else 1
        steps = list(range(every, steps, every))
        return draw.choice(steps) if steps else None

    def judge(self, seed, job, workers):
        """Runs the job in each way; returns words for what was compared, or None where it is refused."""
        draw = random.Random(f"runs {seed}")
        least = 1 + look(job, "cluster.replicas", 0)
        first = self.answer("first", job, least, workers, 1)
        if first is None:
            return None
        told, summary = first
        most = look(job, "cluster.shards", 32)  # Each server has a shard.
        servers = [least + draw.randrange(0, min(3, most - least + 1)) for _ in range(2)]
        compared = ["servers and threads"]
        other, _ = self.answer("servers", job, min(least + draw.randrange(1, 3), most), workers, draw.choice((2, 3)))
        self.assertEqual(other, told, "other servers and threads")
        stop = self.stop_step(draw, job, summary["steps"])
        if stop is not None:
            self.answer("stopped", job, servers[0], workers, 1, {"train.max_steps": stop})
            other, whole = self.answer("stopped", job, servers[1], workers, 2)
            self.assertEqual(whole["resumed_from"], stop)
            self.assertEqual(other, told, f"stopped at step {stop} of {summary['steps']}, and resumed")
            compared.append("resume")
        if workers > 1 and not any(differs(job) for differs, _ in NOT_PARTS):
            other, _ = self.answer("parts", job, least, 1, 2, {"train.micro_batches": workers})
            self.assertEqual(other, told, f"{workers} workers as {workers} parts of one")
            compared.append("parts")
        return compared

    def combination(self, seed):
        """Judges the first job of the seed that is accepted; returns what was compared, and how many were not."""
        for refused, drawn in enumerate(itertools.islice(self.accepted(seed), REFUSED_MAX)):
            if drawn is None:
                continue
            job, workers = drawn
            try:
                compared = self.judge(seed, job, workers)
            except AssertionError:
                print(f"combination {seed}, {workers} workers: {json.dumps(job)}\nonce more: "
                      f"HDPS_BIN={harness.BIN} HDPS_COMBINATIONS_SEED={seed} HDPS_COMBINATIONS_COUNT=1 "
                      f"python3 {pathlib.Path(__file__).resolve()}", flush=True)
                raise
            if compared is not None:
                return compared, refused
        self.fail(f"seed {seed}: {REFUSED_MAX} jobs are refused one after the other")

    def test_random_combinations(self):
        refused, compared, began = 0, collections.Counter(), time.monotonic()
        for seed in range(SEED, SEED + COUNT):
            with self.subTest(seed=seed):
                found, before = self.combination(seed)
                refused += before
                compared.update(found)
            for out in self.folder.iterdir():
                shutil.rmtree(out, ignore_errors=True)
        harness.figure(f"combinations {SEED} to {SEED + COUNT - 1} in {time.monotonic() - began:.0f} s: equal over "
                       f"{', '.join(f'{what} {times}' for what, times in compared.items())}; "
                       f"{refused} jobs were refused in words, and drawn anew")


if __name__ == "__main__":
    harness.main()
