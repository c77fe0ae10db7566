"""Plants mistakes: each ends with status 2 within 5 seconds and a message with the place, the value and the
remedy. Nothing that was saved before changes."""
import hashlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

import harness

SECONDS_MAX = 5


class Mistakes(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.data = pathlib.Path(tempfile.mkdtemp(prefix="hdps_data_"))
        harness.generate(cls.data, rows=2048, eval_rows=512, vocabulary=200, zipf=1.05, seed=7)
        cls.job_object = harness.reference_job(cls.data)
        cls.job = harness.write_job(cls.data / "job.json", cls.job_object)
        cls.saved = cls.data / "saved"
        harness.train(cls.job, cls.saved, 1, 1)
        cls.before = cls.fingerprint()

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.data, ignore_errors=True)

    @classmethod
    def fingerprint(cls):
        digest = hashlib.sha256()
        for file in sorted(p for p in cls.saved.rglob("*") if p.is_file()):
            digest.update(str(file).encode() + file.read_bytes())
        return digest.hexdigest()

    def job_with(self, change):
        """The good job with a change made to it: a function, or text to replace it by."""
        path = self.out("job.json")
        if callable(change):
            job = json.loads(json.dumps(self.job_object))
            change(job)
            return harness.write_job(path, job)
        path.write_text(change)
        return path

    def refused(self, name, command, *needles):
        """Runs a mistaken command; the message must contain every needle."""
        begin = time.monotonic()
        done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=30)
        seconds = time.monotonic() - begin
        said = [l for l in done.stderr.splitlines() if l.strip()]
        harness.figure(f"[{seconds:4.1f} s, status {done.returncode}] {name}: {said[-1] if said else '(nothing)'}")
        with self.subTest(name):
            self.assertEqual(done.returncode, 2, done.stdout[-500:] + done.stderr[-1500:])
            self.assertLess(seconds, SECONDS_MAX)
            for needle in needles:
                self.assertIn(needle, done.stderr)
            self.assertNotIn("Check failed", done.stderr)
            self.assertEqual(self.fingerprint(), self.before, "something saved was touched")

    def train_with(self, change, *flags):
        return [harness.program("hdps"), "train", f"--job={self.job_with(change)}",
                f"--out={self.out('out')}", *flags]

    def test_job_file(self):
        def setter(path, value):
            def change(job):
                *folders, last = path.split(".")
                for folder in folders:
                    job = job.setdefault(folder, {})
                job[last] = value
            return change

        for name, change, *needles in (
            ("unknown key", setter("train.batchsize", 5), "train.batchsize", "batch_size"),
            ("unknown section", setter("trian", {}), "trian", "train"),
            ("text for a number", setter("train.batch_size", "many"), "train.batch_size", "many"),
            ("number for a text", setter("data.format", 3), "data.format", "criteo"),
            ("negative count", setter("train.epochs", -1), "train.epochs", "-1"),
            ("fraction for a count", setter("train.epochs", 1.5), "train.epochs", "1.5"),
            ("schedule without its length", setter("train.schedule", {"kind": "cosine"}),
             "train.schedule", "cosine", "decay_steps"),
            ("negative norm", setter("train.clip_norm", -1), "train.clip_norm", "-1", "from 0"),
            ("unknown penalty", setter("model.deep_l2", 0.1), "model.deep_l2", "no such key"),
            ("unknown mode", setter("train.mode", "snyc"), "snyc", "sync", "async", "ssp"),
            ("unknown optimizer", setter("model.deep_optimizer.kind", "adamm"), "adamm", "adam"),
            ("unknown model", setter("model.type", "wide_and_deep"), "wide_and_deep", "wide_deep"),
            ("unknown products", lambda job: job["model"].update(type="pnn", products="iner"), "inner, outer"),
            ("maps that cannot be halved", lambda job: job["model"].update(type="xdeepfm", cin_maps=3), "halved"),
            ("unknown format", setter("data.format", "tsv"), "data.format", "criteo", "csv"),
            ("device_num 0", setter("parallel.device_num", 0), "device_num", "4096"),
            ("device_num 4097", setter("parallel.device_num", 4097), "device_num", "4096"),
            ("unknown parallel mode", setter("parallel.parallel_mode", "data"), "data_parallel"),
            ("unknown backend", setter("parallel.collective", "hccl"), "hccl", "gloo", "nccl"),
            ("shards not a power of two", setter("cluster.shards", 48), "cluster.shards", "power of two"),
            ("feature that is not there", setter("model.deep_features", ["C27"]), "C27"),
            ("unknown layer input", lambda job: job.update(model={
                "type": "graph", "tables": [], "layers": [
                    {"name": "logit", "kind": "dense", "inputs": ["nowhere"], "units": 1}]}), "nowhere"),
            ("two tables of one name", lambda job: job.update(model={
                "type": "graph", "tables": [{"name": "t", "dim": 1}, {"name": "t", "dim": 2}],
                "layers": [{"name": "e", "kind": "embedding", "table": "t"}]}), '"t"'),
            ("metric that is none", setter("train.metrics", ["logloss", "aux"]), "train.metrics.1", '"aux"', '"auc"'),
            ("metric of no group", setter("train.metrics", ["hr@10"]), "train.metrics.0", "group", "add one"),
            ("pairs without groups", setter("model.loss", "bpr"), "model.loss", "group"),
            ("items that are none", setter("data.item_features", ["C27"]), "data.item_features", '"C27"', '"C2"'),
            ("negatives of what", setter("data.negatives", {"per_positive": 4}), "data.item_features", "name them"),
            ("several labels of criteo", setter("model.tasks", [{"label": "label"}]), "model.tasks", "csv"),
            ("missing data file", setter("data.train", ["nowhere.tsv"]), "nowhere.tsv"),
            ("no training data", setter("data.train", []), "data.train"),
            ("nothing to stop by", lambda job: (job["data"].update(eval=[]), job["train"].update(
                early_stop={"patience": 2})), "train.early_stop", "data.eval"),
            ("unknown set to watch", setter("train.plateau", {"patience": 2, "set": "evl"}),
             "train.plateau.set", "did you mean \"eval\"?"),
            ("unknown metric", setter("train.early_stop", {"patience": 2, "metric": "acu"}),
             "train.early_stop.metric", "acu", "auc"),
            ("more than half held out", setter("data.validation_share", 0.7), "data.validation_share", "0.7"),
            ("evaluation file that is not there", setter("data.eval_sets", [
                {"name": "late", "files": ["nowhere.tsv"]}]), "data.eval_sets.0.files.0", "nowhere.tsv"),
            ("two sets of one name", setter("data.eval_sets", [
                {"name": "eval", "files": ["eval.tsv"]}]), "data.eval_sets.0.name", "eval"),
            ("broken JSON", '{"name": "x",\n  "seed": }', "2:"),
            ("empty file", "", "job.json"),
            ("a list for a job", "[]", "object"),
        ):
            self.refused(name, self.train_with(change), *needles)

    def test_what_needs_layers(self):
        """A job whose model is another program's has none: commands that need them say how its workers join."""
        job = harness.write_job(self.out("tables.json"),
                                {"model": {"type": "tables", "tables": [{"name": "words", "dim": 4}]}})
        hdps, out = harness.program("hdps"), f"--out={self.out('tables')}"
        needles = ("needs the layers of a model", "hdps.join", "docs/pytorch.md")
        self.refused("train", [hdps, "train", f"--job={job}", out], "hdps train", *needles)
        self.refused("plan", [hdps, "plan", f"--job={job}"], "hdps plan", *needles)
        self.refused("placement", [hdps, "plan", f"--job={job}", "--placement"], "hdps plan", *needles)
        self.refused("doctor", [hdps, "doctor", f"--job={job}", "--rows=1M"], "hdps doctor --rows", *needles)
        self.refused("worker", [harness.program("hdps-worker"), f"--job={job}", "--scheduler=tcp://127.0.0.1:9"],
                     "hdps-worker", *needles)
        for command, flag in (("predict", f"--data={job}"), ("evaluate", f"--data={job}"), ("export", out)):
            also = ["--format=safetensors"] if command == "export" else []
            self.refused(command, [hdps, command, f"--checkpoint={self.saved}", f"--job={job}", flag, *also], *needles)
        printed = harness.run([hdps, "train", f"--job={job}", "--print_config"]).stdout
        self.assertEqual(json.loads(printed)["model"]["type"], "tables")

    def test_strategy(self):
        def parallel(mode="hybrid_parallel", **more):
            return lambda job: job.update(parallel={
                "parallel_mode": mode, "dense_exchange": "allreduce", **more})

        def block(**more):
            return parallel(blocks=[{"layers": ["deep1"], **more}])

        kept = self.out("kept.json")
        write = [harness.program("hdps"), "plan", "--strategy", "--workers=4",
                 f"--job={self.job_with(parallel(strategy_ckpt_save_file=str(kept)))}"]
        subprocess.run(write, check=True, stdout=subprocess.DEVNULL)
        edited = self.out("edited.json")
        edited.write_text(kept.read_text().replace('"kind": "dense", "examples": 4',
                                                   '"kind": "dense", "examples": 3'))
        load = lambda file: parallel(strategy_ckpt_load_file=str(file))

        def another_model(job):
            load(kept)(job)
            job["model"]["hidden"] = [16, 16]

        for name, change, *needles in (
            ("three numbers for a matrix", block(shard=[1, 2, 1]), "parallel.blocks.0.shard", "give two"),
            ("more parts than workers", block(shard=[1, 8]), "[1, 8]", "8 parts", "4 workers", "start more"),
            ("parts that do not divide", block(shard=[1, 3]), "3 parts", "do not divide the 4 workers"),
            ("halves that do not meet", block(shard=[[1, 2], [4, 1]]), "2 parts", "make them equal"),
            ("a kind that cannot", parallel(blocks=[{"layers": ["deep_input"], "shard": [1, 2]}]),
             "of kind concat", "only the examples"),
            ("unknown layer in a block", parallel(blocks=[{"layers": ["dep1"], "shard": [1, 2]}]),
             "parallel.blocks.0.layers", "did you mean \"deep1\"?"),
            ("a layout no split gives", block(out_strategy=[3, 1]), "parallel.blocks.0.out_strategy", "[3, 1]"),
            ("cut under data_parallel", lambda job: (block(shard=[1, 2])(job), job["parallel"].update(
                parallel_mode="data_parallel")), "parallel.blocks", "hybrid_parallel"),
            ("cut layers at servers", lambda job: (block(shard=[1, 2])(job), job["parallel"].update(
                dense_exchange="servers")), "parallel.dense_exchange", "use allreduce"),
            ("too little memory", parallel("auto_parallel", worker_memory_limit="1KiB"),
             "worker_memory_limit", "1.00 KiB", "needs least takes"),
            ("unknown search", parallel("auto_parallel", search_mode="dynamic"), "dynamic_programming"),
            ("no such strategy file", load("nowhere.json"), "strategy_ckpt_load_file", "nowhere.json"),
            ("a strategy edited to what cannot be", load(edited), str(edited), "do not divide"),
            ("a strategy of another model", another_model, str(kept), "graph", "plan again"),
        ):
            self.refused(name, self.train_with(change, "--workers=4"), *needles)
        self.refused("a strategy for other workers", self.train_with(load(kept), "--workers=2"),
                     "for 4 workers", "there are 2")

    def test_command_line(self):
        hdps = harness.program("hdps")
        good = [f"--job={self.job}", f"--out={self.out('out')}"]
        closed = socket.socket()
        closed.bind(("127.0.0.1", 0))
        closed.listen()
        port = closed.getsockname()[1]
        self.addCleanup(closed.close)
        scheduler = [harness.program("hdps-scheduler"), *good, "--servers=1", "--workers=1"]
        server = [harness.program("hdps-server"), f"--job={self.job}", "--scheduler=tcp://127.0.0.1:9"]
        for name, command, *needles in (
            ("no such job file", [hdps, "train", "--job=nowhere.json", good[1]], "nowhere.json"),
            ("no --job", [hdps, "train", good[1]], "--job"),
            ("no --out", [hdps, "train", good[0]], "--out"),
            ("unknown flag", [hdps, "train", *good, "--worker=2"], "--worker", "workers"),
            ("a setting as a flag", [hdps, "train", *good, "--epochs=3"],
             "--epochs: there is no such flag; train.epochs is a setting of the job: --set=train.epochs=3"),
            ("no checkpoint there", [hdps, "evaluate", f"--checkpoint={self.data}"],
             "there is no whole checkpoint; expected a checkpoint, or the --out of a run with one"),
            ("flag of another command", [hdps, "train", *good, "--network=25Gbit"], "--network", "--help"),
            ("unknown command", [hdps, "trian"], "trian", "train"),
            ("plan without a job", [hdps, "plan"], "--job"),
            ("plan: unknown speed", [hdps, "plan", good[0], "--network=25GBit"], "25GBit", "25Gbit", "local"),
            ("plan: no speed", [hdps, "plan", good[0], "--network=0Gbit"], "0Gbit", "25Gbit"),
            ("plan: unknown unit", [hdps, "plan", good[0], "--rows=5X"], "--rows=5X", "4.6G"),
            ("plan: no servers", [hdps, "plan", good[0], "--servers=0"], "--servers", "1 to 100000"),
            ("plan: machines that share unevenly", [hdps, "plan", good[0], "--servers=2", "--workers=3",
             "--machines=2"], "--machines=2", "3 workers", "a divisor of both"),
            ("plan: machines without a network", [hdps, "plan", good[0], "--machines=1", "--network=local"],
             "--machines=1", "--network=local", "25Gbit"),
            ("plan: share above 1", [hdps, "plan", good[0], "--unique=1.5"], "--unique", "0 to 1"),
            ("plan: more workers than examples",
             [hdps, "plan", good[0], "--workers=5000", "--set=train.batch_size=64"], "batch_size", "64"),
            ("plan: fewer shards than servers", [hdps, "plan", good[0], "--servers=64"],
             "cluster.shards is 32", "--servers=64", "make it 64"),
            ("more copies than rows of a worker", [hdps, "train", *good, "--workers=2",
             "--set=train.batch_size=4,parallel.interleave_num=3"], "interleave_num is 3", "2 examples"),
            ("a folder without a strategy", [hdps, "train", *good, "--workers=2",
             "--set=parallel.dense_exchange=allreduce,parallel.parallel_mode=auto_parallel,"
             f"parallel.strategy_ckpt_load_file={self.out('nothing')}/"], "strategy_ckpt_load_file",
             "nothing/strategy.json"),
            ("a strategy into no folder", [hdps, "train", *good, "--workers=2",
             "--set=parallel.dense_exchange=allreduce,parallel.parallel_mode=auto_parallel,"
             "parallel.strategy_ckpt_save_file=/nowhere/s.json"], "strategy_ckpt_save_file", "/nowhere"),
            ("unknown --resume", [hdps, "train", *good, "--resume=change"], "--resume=change", "\"changed\""),
            ("plan: constants not there", [hdps, "plan", good[0], "--constants=nowhere.json"], "nowhere.json"),
            ("plan: constants of something else",
             [hdps, "plan", good[0], f"--constants={self.job}"], str(self.job), "hdps-bench constants"),
            ("text for a count", [hdps, "train", *good, "--workers=two"], "workers", "two"),
            ("no workers", [hdps, "train", *good, "--workers=0"], "workers"),
            ("bad --set", [hdps, "train", *good, "--set=train.epoch=3"], "train.epoch", "epochs"),
            ("--set without value", [hdps, "train", *good, "--set=train.epochs"], "train.epochs"),
            ("more workers than rows of a step",
             [hdps, "train", *good, "--workers=2", "--set=train.batch_size=1"], "batch_size"),
            ("device_num is not the number of workers",
             [hdps, "train", *good, "--workers=2", "--set=parallel.device_num=3"], "3", "2"),
            ("cuda without a device", [hdps, "train", *good, "--set=model.device=cuda"], "cuda", "cpu"),
            ("port in use", [*scheduler, f"--listen=tcp://127.0.0.1:{port}"], str(port), "in use"),
            ("beyond loopback", [*scheduler, "--listen=tcp://0.0.0.0:0"], "0.0.0.0", "--insecure"),
            ("no connections", [*scheduler, "--connections_max=0"], "--connections_max=0", "1 to 1000000"),
            ("held by nobody", [*server, "--held_mib_max=-1"], "--held_mib_max=-1", "0 to 16777216"),
            ("server beyond loopback", [*server, "--listen=tcp://*:0"], "--insecure"),
            ("malformed address", [*scheduler, "--listen=http://127.0.0.1"], "http://127.0.0.1", "tcp://"),
            ("worker without scheduler", [harness.program("hdps-worker"), good[0]], "--scheduler"),
            *((f"{program} that dials port 0", [harness.program(program), good[0], "--scheduler=tcp://127.0.0.1:0"],
               "--scheduler: ", "tcp://127.0.0.1:0", "cannot be dialed", "host and port")
              for program in ("hdps-worker", "hdps-server")),
            *((f"{command} dials port 0", [hdps, command, "--scheduler=tcp://127.0.0.1:0", *more],
               "tcp://127.0.0.1:0", "cannot be dialed")
              for command, *more in (("status",), ("scale", "--scale_servers=2"))),
            ("out is a file", [hdps, "train", good[0], f"--out={self.job}"], str(self.job)),
            ("out without permission", [hdps, "train", good[0], "--out=/proc/nowhere"], "/proc/nowhere"),
        ):
            if "cuda" in name and pathlib.Path("/dev/nvidia0").exists():
                continue
            self.refused(name, command, *needles)

    def test_files_that_are_none(self):
        """Nothing is waited for in silence."""
        fifo = self.out("fifo")
        os.mkfifo(fifo)
        hdps, out = harness.program("hdps"), f"--out={self.out('out')}"
        self.refused("a fifo as job", [hdps, "train", f"--job={fifo}", out], str(fifo), "is a fifo", "name a file")
        self.refused("a folder as job", [hdps, "train", f"--job={self.data}", out], str(self.data), "is a folder")

        def fifo_as_data(job):
            job["data"]["train"] = [str(fifo)]
        self.refused("a fifo as data", self.train_with(fifo_as_data), str(fifo), "is a fifo")
        self.refused("predict of a fifo", [hdps, "predict", f"--job={self.job}", f"--data={fifo}",
                                           f"--checkpoint={self.saved / 'checkpoint'}",
                                           f"--out={self.out('scores.csv')}"], str(fifo), "is a fifo")

    def test_two_of_one_rank(self):
        """Two servers that both want to be server 0: the second is told who has it."""
        address_file = self.out("address")
        scheduler = subprocess.Popen(
            [harness.program("hdps-scheduler"), f"--job={self.job}", f"--out={self.out('out')}",
             "--servers=2", "--workers=1", "--listen=tcp://127.0.0.1:0", f"--address_file={address_file}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(scheduler.wait)
        self.addCleanup(scheduler.kill)
        harness.wait_until(lambda: address_file.exists() and address_file.read_text(), 20, "the address")
        server = [harness.program("hdps-server"), f"--job={self.job}", "--rank=0",
                  f"--scheduler={address_file.read_text().strip()}"]
        log = self.out("first.log")
        first = subprocess.Popen([*server, f"--log_file={log}"], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        self.addCleanup(first.wait)
        self.addCleanup(first.kill)
        # Whichever of the two the scheduler hears second is refused.
        begin = time.monotonic()
        second = subprocess.Popen(server, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(second.wait)
        self.addCleanup(second.kill)
        harness.wait_until(lambda: first.poll() is not None or second.poll() is not None, SECONDS_MAX,
                           "a refusal")
        self.assertEqual(first.poll() if first.poll() is not None else second.poll(), 2)
        harness.figure(f"[{time.monotonic() - begin:4.1f} s] two servers of one rank: refused")

    def test_data(self):
        lines = (self.data / "train.tsv").read_text().splitlines()

        def data_job(text):
            bad = self.out("bad.tsv")
            bad.write_text(text)
            return lambda job: job["data"].update(train=[str(bad)])

        for name, line, *needles in (
            ("too few columns", "1\t2\t3", "bad.tsv:3:"),
            ("text for a number", "\t".join(["1", "x7"] + lines[2].split("\t")[2:]), "bad.tsv:3:3", "x7"),
            ("label that is none", "\t".join(["2"] + lines[2].split("\t")[1:]), "bad.tsv:3:1", "'2'"),
        ):
            text = "\n".join(lines[:2] + [line] + lines[3:600]) + "\n"
            self.refused(f"bad row: {name}", self.train_with(data_job(text)), "max_bad_rows", *needles)
        broken = self.out("broken.gz")
        broken.write_bytes(b"\x1f\x8b" + os.urandom(500))
        self.refused("broken gzip", self.train_with(
            lambda job: job["data"].update(train=[str(broken)])), "broken.gz")
        empty = self.out("empty_folder")
        empty.mkdir()
        (empty / "_SUCCESS").write_text("")
        self.refused("a folder without a file", self.train_with(
            lambda job: job["data"].update(train=[str(empty)])), "data.train.0", str(empty))
        self.refused("a pattern that finds nothing", self.train_with(
            lambda job: job["data"].update(eval=[f"{self.folder}/day=*/*.tsv"])), "data.eval.0", "no file matches")

    def test_saved(self):
        hdps = harness.program("hdps")
        other = self.job_with(lambda job: job["model"].update(embedding_dim=8))
        self.refused("checkpoint of another job", [hdps, "train", f"--job={other}", f"--out={self.saved}"],
                     "another job", "--out")
        self.refused("predict with another job", [
            hdps, "predict", f"--job={other}", f"--checkpoint={self.saved}/checkpoint",
            f"--data={self.data}/eval.tsv"], "another job")
        self.refused("checkpoint of other settings", [
            hdps, "train", f"--job={self.job}", f"--out={self.saved}",
            "--set=train.batch_size=64,seed=9,train.mode=async,parallel.wire=fp16"],
                     "seed is 9, the checkpoint's is 1", "train.mode is async, the checkpoint's is sync",
                     "train.batch_size is 64, the checkpoint's is 1024", "and 1 more", "--out")
        self.refused("evaluate with other settings", [
            hdps, "evaluate", f"--job={self.job}", f"--checkpoint={self.saved}",
            "--set=cluster.shards=64,model.embedding_dim=8"],
                     "cluster.shards is 64, the checkpoint's is 32", "dim (deep) is 8, the checkpoint's is 16")
        self.refused("no checkpoint", [hdps, "evaluate", f"--job={self.job}", "--checkpoint=/nowhere"],
                     "/nowhere")
        self.refused("unknown checkpoint to take", [
            hdps, "evaluate", f"--checkpoint={self.saved}", "--which=last"], "--which=last", "newest")
        self.refused("unknown set to score", [
            hdps, "predict", f"--checkpoint={self.saved}", "--eval_set=evl"], "--eval_set=evl", 'did you mean "eval"?', "its sets are eval")
        self.refused("inspect of nothing", [hdps, "inspect", f"--checkpoint={self.folder}"],
                     str(self.folder))


if __name__ == "__main__":
    harness.main()
