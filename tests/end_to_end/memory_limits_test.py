"""Tests that a program without enough memory ends at once with a message and status 2 or 3.

First, each setting that scales memory: every numeric setting in docs/job_file.md, which is made from the settings'
records, is listed here either with a job that asks for too much, or among those that do not scale memory. Then
programs under limits that are unrelated to a job.
"""
import os
import pathlib
import random
import re
import resource
import subprocess

import harness

MIB = 1 << 20
WORDS = re.compile(r"error: .*(out of memory|cannot have the memory|no memory is left)")
# Of the heaps of many threads each takes 64 MiB of addresses at a time.
ONE_HEAP = {"MALLOC_ARENA_MAX": "1"}
LIMITS = harness.share(2, 40, "38 of 40 limits for each program")
SEED = int(os.environ.get("HDPS_MEMORY_SEED", "1"))

TOWERS = {"user_features": ["user"], "item_features": ["item"]}
TASKS = {"tasks": [{"label": "label"}, {"label": "label2"}]}
WIDE = {"embedding_dim": 4096}
TRANSFORMER = {"type": "bst", "history": "history", "target": "item", "blocks": 16, "feed_forward": 65536, **WIDE}


def layers(*kinds):
    return {"type": "graph", "tables": [{"name": "t", "dim": 4096}],
            "layers": [{"name": "in", "kind": "embedding", "table": "t", "features": ["user", "item"]}, *kinds,
                       {"name": "logit", "inputs": [kinds[-1]["name"]], "units": 1}]}


# Setting: the model, other settings, and what has to be named. The data and the rest are base_job's.
SCALES = {
    "model.hidden": ({"hidden": [65536, 65536]}, {}, "model.hidden"),
    "model.embedding_dim": (WIDE, {"train.batch_size": 16384}, "embedding_dim|rows"),
    "model.feature_dims": ({"feature_dims": {"user": 4096}, "hidden": [65536, 8]}, {}, "model.hidden"),
    "model.bottom_hidden": ({"type": "dlrm", "bottom_hidden": [65536, 65536, 16]}, {}, "model.layers"),
    "model.cin_maps": ({"type": "xdeepfm", "cin_maps": 4096, "cin_levels": 16}, {}, "model.layers"),
    "model.cin_levels": ({"type": "xdeepfm", "cin_maps": 4096, "cin_levels": 16}, {}, "model.layers"),
    "model.cross_layers": ({"type": "dcn_v2", "cross_layers": 64, **WIDE}, {}, "model.layers"),
    "model.cross_experts": ({"type": "dcn_mix", "cross_experts": 64, "cross_rank": 4096, **WIDE}, {}, "model.layers"),
    "model.cross_rank": ({"type": "dcn_mix", "cross_experts": 64, "cross_rank": 4096, **WIDE}, {}, "model.layers"),
    "model.attention_layers": ({"type": "autoint", "attention_layers": 16, "attention_units": 4096,
                                "attention_heads": 64}, {}, "model.layers"),
    "model.attention_units": ({"type": "autoint", "attention_layers": 16, "attention_units": 4096,
                               "attention_heads": 64}, {}, "model.layers"),
    "model.attention_heads": ({"type": "autoint", "attention_layers": 16, "attention_units": 4096,
                               "attention_heads": 64}, {}, "model.layers"),
    "model.attention_hidden": ({"type": "din", "history": "history", "target": "item", "attention_hidden": 4096,
                                "history_length": 4096, "embedding_dim": 256}, {"train.batch_size": 16384},
                               "batch_size|rows"),
    "model.history_length": ({"type": "din", "history": "history", "target": "item", "history_length": 4096,
                              "embedding_dim": 256}, {"train.batch_size": 16384}, "batch_size|rows"),
    "model.blocks": (TRANSFORMER, {}, "model.layers"),
    "model.feed_forward": (TRANSFORMER, {}, "model.layers"),
    "model.experts": ({"type": "mmoe", "experts": 256, "expert_units": 4096, **TASKS, **WIDE}, {}, "model.layers"),
    "model.expert_units": ({"type": "mmoe", "experts": 256, "expert_units": 4096, **TASKS, **WIDE}, {},
                           "model.layers"),
    "model.task_experts": ({"type": "ple", "task_experts": 128, "expert_units": 4096, **TASKS, **WIDE}, {},
                           "model.layers"),
    "model.levels": ({"type": "ple", "levels": 8, "expert_units": 4096, "experts": 128, **TASKS}, {},
                     "model.layers"),
    "model.classes": ({"type": "mlp", "classes": 65536, "hidden": [65536]}, {}, "model.hidden"),
    "model.vocab_cache_size": ({"vocab_cache_size": 10 ** 9}, {}, "vocab_cache_size"),
    "model.tables[].dim": (layers({"name": "d", "inputs": ["in"], "units": 65536}), {}, "model.layers"),
    "model.tables[].vocab_cache_size": (
        {**layers({"name": "d", "inputs": ["in"], "units": 4}),
         "tables": [{"name": "t", "dim": 16, "vocab_cache_size": 10 ** 9}]}, {}, "vocab_cache_size"),
    "model.layers[].units": (layers({"name": "d", "inputs": ["in"], "units": 65536}), {}, "model.layers"),
    "model.layers[].levels": (layers({"name": "c", "kind": "cin", "inputs": ["in"], "units": 65536, "levels": 16}),
                              {}, "model.layers"),
    "model.layers[].experts": (
        layers({"name": "c", "kind": "cross_mix", "inputs": ["in"], "units": 16, "experts": 64, "rank": 4096}), {},
        "model.layers"),
    "model.layers[].rank": (
        layers({"name": "c", "kind": "cross_mix", "inputs": ["in"], "units": 16, "experts": 64, "rank": 4096}), {},
        "model.layers"),
    "model.layers[].heads": (
        layers({"name": "a", "kind": "attention", "inputs": ["in"], "units": 4096, "heads": 256}), {},
        "model.layers"),
    "model.layers[].length": (
        {"type": "graph", "tables": [{"name": "t", "dim": 256}],
         "layers": [{"name": "in", "kind": "sequence", "table": "t", "features": ["history"], "length": 4096},
                    {"name": "logit", "inputs": ["in"], "units": 1}]}, {"train.batch_size": 16384},
        "batch_size|model.layers|rows"),
    "policy.admit_sketch_bytes": (
        {"policy": {"admit_after": 2, "admit_sketch_bytes": "64GiB"}}, {}, "admit_sketch_bytes"),
    "data.columns[].repeat": (
        {"type": "mlp", "hidden": [65536]},
        {"data.columns": [{"name": "label", "type": "label"}, {"name": "x", "type": "numeric", "repeat": 65536}]},
        "model.hidden"),
    "data.num_fields": (
        {"hidden": [65536]}, {"data.format": "libffm", "data.columns": None, "data.num_fields": 65536},
        "model.hidden"),
    "data.image_shape": (
        {"type": "mlp", "hidden": [65536]},
        {"data.format": "idx", "data.columns": None, "data.image_shape": [65536, 1]}, "model.hidden"),
    "data.shuffle_rows": ({}, {"data.shuffle_rows": 10 ** 8, "data.train": ["long.csv"]}, "data.shuffle_rows"),
    "data.negatives.per_positive": (
        {}, {"data.negatives": {"per_positive": 1000}, "data.item_features": ["item"], "train.batch_size": 16777216},
        "batch_size"),
    "train.batch_size": ({}, {"train.batch_size": 16777216}, "batch_size"),
    "train.micro_batches": (WIDE, {"train.batch_size": 16384, "train.micro_batches": 2}, "batch_size|rows"),
    "train.lookahead": (WIDE, {"train.batch_size": 4096, "train.lookahead": 16}, "batch_size|rows"),
    "parallel.grad_accumulation_step": (
        WIDE, {"train.batch_size": 16384, "parallel.grad_accumulation_step": 2}, "batch_size|rows"),
    "parallel.interleave_num": (
        WIDE, {"train.batch_size": 16384, "parallel.interleave_num": 2}, "batch_size|rows"),
    "cluster.shards": ({}, {"cluster.shards": 65536, "data.train": ["rows.csv"]}, "cluster.shards"),
}
# Each change is judged by these, which ask in different places, or are said to be much at different times.
IN_SHARE = {"model.hidden", "model.vocab_cache_size", "model.embedding_dim", "model.history_length",
            "policy.admit_sketch_bytes", "data.shuffle_rows", "train.batch_size", "cluster.shards"}

# Numbers that count steps, time, files or workers, are part of the arithmetic, or bound memory.
OTHERS = """
seed data.distinct data.distinct_half
data.cache_share data.validation_share data.validation_block_lines data.parts data.max_bad_rows data.columns[].vocab_size data.columns[].mean data.columns[].scale data.features[].boundaries
data.features[].hash_buckets model.dropout model.embedding_dropout model.senet_reduction model.temperature
model.wide_loss_l1 model.wide_loss_l2 model.deep_loss_l1 model.deep_loss_l2 model.manual_shapes model.column_slices
model.dense_loss_l1 model.dense_loss_l2 model.positive_weight
optimizer.learning_rate optimizer.momentum optimizer.beta1 optimizer.beta2 optimizer.rho optimizer.epsilon
optimizer.l1 optimizer.l2 optimizer.initial_accumulator optimizer.weight_decay
schedule.warmup_steps schedule.decay_steps schedule.decay schedule.power schedule.least init.scale
policy.admit_after policy.evict_after_steps policy.evict_after_seconds policy.max_rows policy.max_bytes policy.admit_probability
model.tables[].loss_l1 model.tables[].loss_l2 model.tables[].manual_shapes model.tables[].column_slices
model.auxiliary_weight model.layers[].loss_weight
model.layer_settings{}.fusion model.layer_settings{}.shard
model.layers[].fusion model.layers[].rate model.layers[].epsilon model.layers[].momentum model.layers[].temperature
model.layers[].shard model.tasks[].weight model.tasks[].positive_weight
train.staleness_bound train.max_staleness train.delay_compensation train.epochs train.max_steps train.eval_every_steps train.log_every_steps
parallel.global_rank train.clip_value train.clip_norm
train.evals_per_epoch train.progressive.window train.early_stop.patience train.early_stop.min_delta train.plateau.patience
train.plateau.min_delta train.plateau.factor train.plateau.least train.cache_refresh_steps
parallel.device_num parallel.dataset_strategy parallel.all_reduce_fusion_config parallel.worker_memory_limit
parallel.comm_fusion.allreduce.config parallel.comm_fusion.allgather.config parallel.comm_fusion.reducescatter.config
parallel.parallel_optimizer_config.parallel_optimizer_threshold
parallel.parallel_optimizer_config.optimizer_weight_shard_size
parallel.blocks[].in_strategy parallel.blocks[].out_strategy parallel.blocks[].shard parallel.blocks[].level
checkpoint.every_steps checkpoint.delta_every_steps checkpoint.every_seconds
checkpoint.delta_every_seconds checkpoint.every_epochs checkpoint.keep checkpoint.retry_s checkpoint.copy_wait_s data.kafka.flush_s
cluster.heartbeat_ms cluster.dead_after_ms cluster.balance_after_s cluster.replace_after_s cluster.replicas cluster.scheduler_timeout_s
cluster.rendezvous_timeout_s cluster.request_timeout_s cluster.memory_limit cluster.request_retry_ms
cluster.pushes_in_flight_max
""".split()

SECTIONS = {"The whole": "", "An optimizer": "optimizer.", "A schedule of learning rates": "schedule.",
            "An init": "init.", "A policy": "policy.", "Expert settings": ""}


def numeric_settings():
    """Names of all settings whose value is a number, or has some, as docs/job_file.md has them."""
    text = (harness.ROOT / "docs" / "job_file.md").read_text()
    names, prefix = set(), ""
    keys = text[text.index("<!-- keys -->"):text.index("<!-- end of keys -->")]
    # A value that is too long for its row stands below the table, as "*value*: ...".
    for line in keys.replace("\n  ", " ").splitlines():
        if line.startswith("### "):
            prefix = SECTIONS.get(line[4:], line[4:] + ".")
        row = (re.match(r"\| `([\w.]+)` \| ([^|]*) \|", line) or
               re.match(r"- \*\*`([\w.]+)`\*\* .*\*value\*: (.*)", line))
        if row and re.match(r"(an? |one of|null|-1).*\bnumbers?\b", row[2]):
            names.add(prefix + row[1])
    return names


def limited(bytes_max):
    """What a child does first: no more addresses than that, and no core file."""
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (bytes_max, bytes_max))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return limit


def run_limited(command, bytes_max, timeout=120):
    return harness.run(command, timeout, None, preexec_fn=limited(bytes_max), env={**os.environ, **ONE_HEAP})


def loads(name, bytes_max):
    """Whether the program begins at all: before that it is the system's loader that says what is missing."""
    return run_limited([name, "--version"], bytes_max).returncode == 0


def last_error(text):
    return next((line for line in reversed(text.splitlines()) if "error: " in line), text[-300:])


class MemoryLimits(harness.DaemonsCase):
    def setUp(self):
        super().setUp()
        numbers = random.Random(SEED)
        with open(self.out("rows.csv"), "w") as rows:
            for i in range(20000):
                rows.write(f"{i % 2},{i // 2 % 2},u{i},i{numbers.randrange(10000)},h{i}|h{i + 1},{i % 7}\n")

    def addresses(self, *command):
        """Runs a program that ends well; the bytes of addresses that it took at most."""
        process = self.start_command(*command, env=ONE_HEAP, stderr=subprocess.DEVNULL)
        most = 0

        def ended():
            nonlocal most
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            peak = re.search(r"VmPeak:\s*(\d+) kB", status)
            most = max(most, int(peak[1]) << 10 if peak else 0)
            return process.poll() is not None

        harness.wait_until(ended, 120, "the end of " + " ".join(map(str, command)))
        self.assertEqual(process.returncode, 0)
        return most

    def job(self, model, settings):
        job = {
            "name": "limits", "data": {
                "format": "csv", "train": ["rows.csv"], "shuffle_rows": 16,
                "columns": [{"name": "label", "type": "label"},
                            {"name": "label2", "type": "label" if "tasks" in model else "skip"},
                            {"name": "user"}, {"name": "item"}, {"name": "history", "type": "multi"},
                            {"name": "x", "type": "numeric"}]},
            "model": {"type": "wide_deep", "hidden": [8], "embedding_dim": 4, "device": "cpu", **model},
            "train": {"batch_size": 1024}, "cluster": {"shards": 2}}
        if job["model"]["type"] == "graph":
            del job["model"]["hidden"], job["model"]["embedding_dim"]
        for name, value in settings.items():
            section, key = name.split(".")
            job.setdefault(section, {})[key] = value
            if value is None:
                del job[section][key]
        return harness.write_job(self.out("job.json"), job)

    def test_every_number_is_among_those_that_scale_memory_or_not(self):
        named = set(SCALES) | set(OTHERS)
        self.assertEqual(sorted(numeric_settings() ^ named), [])
        self.assertEqual(set(SCALES) & set(OTHERS), set())

    def test_each_setting_is_refused_in_words(self):
        """A limit that has room for the job as it is, and not for what the setting asks for."""
        hdps = harness.program("hdps")
        job = self.job({}, {})
        limit = self.addresses(hdps, "train", f"--job={job}", f"--out={self.out('plain')}", "--threads=1") + 256 * MIB
        with open(self.out("long.csv"), "w") as rows:  # 400 MiB of lines.
            for i in range(6400):
                rows.write(f"{i % 2},0,u{i},{'i' * (64 << 10)},h,{i % 7}\n")
        chosen = harness.share(IN_SHARE, set(SCALES), f"{len(SCALES) - len(IN_SHARE)} of {len(SCALES)} settings")
        for name, (model, settings, words) in SCALES.items():
            if name not in chosen:
                continue
            with self.subTest(name):
                job = self.job(model, settings)
                done = run_limited([hdps, "train", f"--job={job}", f"--out={self.out('run')}", "--threads=1"], limit)
                said = last_error(done.stderr)
                harness.figure(f"{name} under {limit >> 20} MiB: status {done.returncode}: {said}")
                self.assertIn(done.returncode, (2, 3), said)
                self.assertRegex(said, WORDS)
                self.assertRegex(said, words)

    def test_programs_under_any_limit(self):
        """From what their libraries take on: they do their work, or end with 3 (2: the job alone asks for more)."""
        numbers = random.Random(SEED)
        hdps, out = harness.program("hdps"), self.out("plain")
        job = self.job({}, {"cluster.shards": 8})
        train = [hdps, "train", f"--job={job}"]
        harness.run([*train, f"--out={out}"])
        commands = {
            "train": lambda n: [*train, f"--out={self.out(f'run_{n}')}", "--workers=2"],
            "evaluate": lambda n: [hdps, "evaluate", f"--checkpoint={out}", f"--data={self.out('rows.csv')}"],
            "predict": lambda n: [hdps, "predict", f"--checkpoint={out}", f"--data={self.out('rows.csv')}",
                                  f"--out={self.out('scores')}"],
            "inspect": lambda n: [hdps, "inspect", f"--checkpoint={out}"]}
        for name, command in commands.items():
            ended = {}
            for n in range(LIMITS):
                limit = numbers.randrange(200, 2200) * MIB
                while not loads(hdps, limit):
                    limit += 100 * MIB
                done = run_limited(command(n), limit)
                said = last_error(done.stderr)
                with self.subTest(name, limit=limit):
                    self.assertIn(done.returncode, (0, 2, 3), done.stderr[-2000:])
                    if done.returncode != 0:
                        self.assertRegex(said, WORDS)
                ended[done.returncode] = ended.get(done.returncode, 0) + 1
            harness.figure(f"hdps {name} under limits from 0.2 to 2.2 GB: "
                           + ", ".join(f"{count} with {status}" for status, count in sorted(ended.items())))

    def test_a_server_under_any_limit(self):
        """It serves, or ends with 3 in words; nobody is left behind."""
        numbers = random.Random(SEED)
        job = self.job({}, {"cluster.shards": 8, "train.epochs": 1000000})
        ended = {}
        for n in range(LIMITS):
            limit = numbers.randrange(200, 2200) * MIB
            if not loads(harness.program("hdps-server"), limit):
                continue
            address = self.out(f"address_{n}")
            scheduler = self.start("hdps-scheduler", f"--job={job}", f"--out={self.out(f'cluster_{n}')}",
                                   "--listen=tcp://127.0.0.1:0", f"--address_file={address}", stderr=subprocess.DEVNULL)
            harness.wait_until(address.exists, 30, "the scheduler's address")
            place = f"--scheduler={address.read_text().strip()}"
            worker = self.start("hdps-worker", f"--job={job}", place, stderr=subprocess.DEVNULL)
            log = self.out(f"server_{n}.log")
            with open(log, "w") as said:
                server = subprocess.Popen([harness.program("hdps-server"), f"--job={job}", place], stderr=said,
                                          stdin=subprocess.DEVNULL, preexec_fn=limited(limit),
                                          env={**os.environ, **ONE_HEAP})
            self.addCleanup(server.kill)
            serves = self.out(f"cluster_{n}") / "metrics.jsonl"
            harness.wait_until(lambda: server.poll() is not None or (serves.exists() and serves.stat().st_size > 0),
                               60, f"a step under {limit}")
            status = server.poll()
            with self.subTest(limit=limit):
                self.assertIn(status, (None, 2, 3), log.read_text()[-2000:])
                if status is not None:
                    self.assertRegex(last_error(log.read_text()), WORDS)
            ended[status] = ended.get(status, 0) + 1
            for process in (server, worker, scheduler):
                process.kill()
                process.wait()
        harness.figure("hdps-server under limits from 0.2 to 2.2 GB: " + ", ".join(
            f"{count} {'serve' if status is None else f'end with {status}'}" for status, count in ended.items()))

    def test_a_server_that_may_open_few_files(self):
        """Libraries that have no other way to say it stop the process; that is told in words, too."""
        job = self.job({}, {"cluster.scheduler_timeout_s": 1, "cluster.rendezvous_timeout_s": 1})
        ended = {}
        for files in range(4, 16):
            done = harness.run(
                [harness.program("hdps-server"), f"--job={job}", "--scheduler=tcp://127.0.0.1:1"], 60, 3,
                preexec_fn=lambda most=files: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most)))
            self.assertRegex(last_error(done.stderr), "error: .*(open files|ulimit -n|is it running there)")
            ended[files] = last_error(done.stderr)
        harness.figure(f"hdps-server with 4 to 15 files: all end with 3, with 6: {ended[6]}")


if __name__ == "__main__":
    harness.main()
