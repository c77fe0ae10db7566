"""Draws jobs at random from tables of choices, with the small files that they read."""
import random

import harness

TRAIN_ROWS, EVAL_ROWS = 600, 150

COLUMNS = ("click", "buy", "stars", "user", "item", "genre", "tags", "history", "price", "age", "weight", "of")
FIELDS = 3

# ---- Data ------------------------------------------------------------------------------------------


def csv_row(draw):
    user, item, price = draw.randrange(40), draw.randrange(30), round(draw.uniform(0.5, 99), 2)
    click = int(draw.random() < 1 / (1 + 2.7 ** (user % 5 - item % 7 / 2)))
    buy = int(click and draw.random() < 0.5)
    some = [f"i{draw.randrange(30)}" for _ in range(draw.randrange(5))]
    return ",".join(map(str, (click, buy, user % 5 + item % 7 / 2, f"u{user}", f"i{item}", f"g{item % 5}",
                              "|".join(f"t{draw.randrange(9)}" for _ in range(draw.randrange(1, 4))),
                              "|".join(some), price, draw.choice(("", 18, 35, 71)),
                              draw.choice((0.5, 1, 2)), f"u{user}")))


def indexed_row(draw, form):
    fields = [100 * field + draw.randrange(12) for field in range(FIELDS)]
    label = int(draw.random() < 1 / (1 + 2.7 ** (fields[0] % 5 - fields[1] % 100 / 4)))
    values = [draw.choice((1, 0.5, 2)) for _ in fields]
    if form == "libsvm":
        return f"{label} " + " ".join(f"{i}:{v}" for i, v in zip(fields, values))
    if form == "libffm":
        return f"{label} " + " ".join(f"{f}:{i}:{v}" for f, (i, v) in enumerate(zip(fields, values)))
    return f"{label} " + " ".join(f"{i}:{v}" for i, v in zip(fields, values))


def write_data(folder):
    """One training and one evaluation file of each format; `folder` exists."""
    draw = random.Random(7)
    for name, rows in (("train", TRAIN_ROWS), ("eval", EVAL_ROWS)):
        (folder / f"{name}.csv").write_text("".join(csv_row(draw) + "\n" for _ in range(rows)))
        for form in ("libsvm", "libffm", "libfm"):
            (folder / f"{name}.{form}").write_text("".join(indexed_row(draw, form) + "\n" for _ in range(rows)))
    # Rows that data.max_bad_rows bears.
    rows = (folder / "train.csv").read_text().splitlines(keepends=True)
    for at in (3, 77, 402):
        rows.insert(at, "1,0,2.5,u1\n")
    (folder / "torn.csv").write_text("".join(rows))
    harness.generate(folder / "criteo", rows=TRAIN_ROWS, eval_rows=EVAL_ROWS, vocabulary=40, seed=5)


def csv_data(draw, folder, labels):
    torn = draw.random() < 0.15
    kinds = {"user": {}, "item": {}, "genre": {}, "tags": {"type": "multi"},
             "history": {"type": "multi", "vocabulary": "item"},
             "price": draw.choice(({"type": "numeric", "transform": "log1p"},
                                   {"type": "numeric", "transform": "standardize", "mean": 50, "scale": 28})),
             "age": {"type": "numeric"}}
    for name in ("genre", "tags", "price", "age"):
        if draw.random() < 0.2:
            kinds[name] = {"type": "skip"}
    if draw.random() < 0.2:
        kinds["item"]["vocabulary"] = "item"
    columns = []
    for name in COLUMNS:
        if name in labels:
            columns.append({"name": name, "type": "label"})
        elif name in kinds:
            columns.append({"name": name, **kinds[name]})
        else:
            used = {"weight": 0.25, "of": 0.35}.get(name, 0)
            kind = {"weight": "weight", "of": "group"}.get(name) if draw.random() < used else "skip"
            columns.append({"name": name, "type": kind})
    data = {"train": [str(folder / ("torn.csv" if torn else "train.csv"))], "eval": [str(folder / "eval.csv")],
            "columns": columns}
    if torn:
        data["max_bad_rows"] = 5
    features = []
    if kinds["price"]["type"] == "numeric" and draw.random() < 0.4:
        features.append({"name": "price_range", "kind": "bucketized", "from": ["price"],
                         "boundaries": [5, 20, 50, 80]})
    if draw.random() < 0.4:
        features.append({"name": "user_item", "from": ["user", "item"], "hash_buckets": draw.choice((0, 64))})
    if features:
        data["features"] = features
    if draw.random() < 0.2:
        data["item_features"] = ["item"]
        data["negatives"] = {"per_positive": draw.choice((1, 3)), "by": draw.choice(("uniform", "frequency"))}
    return data


def indexed_data(folder, form):
    data = {"format": form, "train": [str(folder / f"train.{form}")], "eval": [str(folder / f"eval.{form}")]}
    return data if form == "libsvm" else {**data, "num_fields": FIELDS}


def criteo_data(folder):
    return {"format": "criteo", "train": [str(folder / "criteo" / "train.tsv")],
            "eval": [str(folder / "criteo" / "eval.tsv")]}


# ---- Models ----------------------------------------------------------------------------------------

RULES = ("sgd", "momentum", "adagrad", "rowwise_adagrad", "adam", "lazy_adam", "adamw", "ftrl", "rmsprop",
         "adadelta")
RECIPES = ("wide_deep", "fm", "deepfm", "nfm", "pnn", "xdeepfm", "fibinet", "dcn_v2", "dcn_mix", "dlrm",
           "autoint", "logistic")
OF_COLUMNS = ("din", "dien", "bst", "sasrec", "two_tower", "mmoe", "ple", "esmm", "graph", "mlp")  # They name columns.


def rule(draw, *more):
    kind = draw.choice(RULES + more)
    given = {"kind": kind, "learning_rate": draw.choice((0.003, 0.01, 0.05))}
    if kind == "ftrl":
        given.update(l1=0.0001, l2=0.0001)
    if kind in ("adamw", "lamb"):
        given["weight_decay"] = 0.01
    return given


def schedule(draw):
    return draw.choice(({"kind": "constant", "warmup_steps": 3}, {"kind": "step", "decay_steps": 3},
                        {"kind": "exponential", "decay_steps": 4, "decay": 0.5},
                        {"kind": "cosine", "warmup_steps": 2, "decay_steps": 9},
                        {"kind": "polynomial", "decay_steps": 7, "power": 2, "least": 0.1}))


def graph(draw, outputs):
    """Tables and layers by hand: one or two embeddings, some layers above them, the logits."""
    tables = [{"name": "a", "dim": draw.choice((4, 8)), "optimizer": rule(draw)}]
    layers = [{"name": "e", "kind": "embedding", "table": "a", "pooling": draw.choice(("sum", "mean", "max"))}]
    top = ["e"]
    if draw.random() < 0.4:
        tables.append({"name": "b", "dim": 6, "optimizer": rule(draw), "schedule": schedule(draw)})
        layers.append({"name": "s", "kind": "embedding", "table": "b", "features": ["user", "item"],
                       "combine": "sum"})
        top.append("s")
    if len(top) > 1:
        layers.append({"name": "both", "kind": "concat", "inputs": top})
        top = ["both"]
    for number in range(draw.randrange(1, 4)):
        layer = draw.choice(({"kind": "dense", "units": 12, "activation": "relu"}, {"kind": "layer_norm"},
                             {"kind": "dropout", "rate": 0.3}, {"kind": "batch_norm"}, {"kind": "cross", "units": 2},
                             {"kind": "cross_mix", "units": 1, "experts": 2, "rank": 3},
                             {"kind": "activation", "activation": "gelu"}))
        layers.append({"name": f"l{number}", "inputs": top, **layer})
        top = [f"l{number}"]
    layers.append({"name": "logit", "inputs": top, "units": outputs})
    return {"type": "graph", "tables": tables, "layers": layers}


def model_of_columns(draw, kind):
    """A model that names columns of the CSV file, and its label columns."""
    click, stars = {"label": "click"}, {"label": "stars", "loss": "squared_error", "weight": 0.5}
    if kind == "din":
        return {"type": kind, "history": "history", "target": "item", "history_length": draw.choice((2, 4)),
                "attention_scores": draw.choice(("plain", "softmax"))}, ("click",)
    if kind == "dien":
        return {"type": kind, "history": "history", "target": "item", "history_length": draw.choice((2, 4)),
                "auxiliary_weight": draw.choice((0, 0.5))}, ("click",)
    if kind in ("bst", "sasrec"):
        return {"type": kind, "history": "history", "target": "item", "history_length": draw.choice((2, 4)),
                "blocks": draw.choice((1, 2)), "feed_forward": 12}, ("click",)
    if kind == "two_tower":
        model = {"type": kind, "user_features": ["user", "history"], "item_features": ["item"]}
        return model, ("click",)
    if kind == "mlp":
        return {"type": kind}, ("click",)
    if kind == "esmm":
        return {"type": kind, "tasks": [click, {"label": "buy"}]}, ("click", "buy")
    if kind in ("mmoe", "ple"):
        return {"type": kind, "experts": 2, "expert_units": 6, "tasks": [click, stars]}, ("click", "stars")
    if draw.random() < 0.4:
        return {**graph(draw, 2), "tasks": [click, stars]}, ("click", "stars")
    return graph(draw, 1), ("click",)


def losses(draw, data, model):
    """A loss that is not the usual one, as far as the data has what it takes."""
    if "tasks" in model:
        return
    kinds = [column.get("type") for column in data.get("columns", ())]
    if model["type"] == "two_tower" and draw.random() < 0.5:
        data["item_features"] = ["item"]
        data.pop("negatives", None)
        model["loss"] = "sampled_softmax"
    elif "group" in kinds and draw.random() < 0.4:
        model["loss"] = "bpr"
    elif "columns" in data and draw.random() < 0.15:
        model["loss"] = "squared_error"


# ---- Settings --------------------------------------------------------------------------------------

# Key, how often it is given, its values. Each is drawn by itself.
CHOICES = (
    ("seed", 0.5, (2, 77)),
    ("data.shuffle_rows", 0.6, (0, 50, 1000)),
    ("data.validation_share", 0.2, (0.1, 0.3)),
    ("model.embedding_dim", 0.9, (4, 8, 12)),
    ("model.hidden", 0.9, ([16], [16, 8], [])),
    ("model.batch_norm", 0.3, (True,)),
    ("model.dropout", 0.3, (0.2,)),
    ("model.embedding_dropout", 0.15, (0.2,)),
    ("model.weights", 0.25, ("fp16", "bf16")),
    ("model.vocab_cache_size", 0.25, (5, 40, 100000)),
    ("model.policy", 0.3, ({"admit_after": 2}, {"evict_after_steps": 2}, {"max_rows": 64},
                           {"max_rows": 64, "evict_by": "use"}, {"max_bytes": 8192, "evict_by": "norm"},
                           {"admit_probability": 0.5}, {"admit_after": 2, "evict_after_steps": 3})),
    ("model.feature_dims", 0.1, ({"user": 3}, {"item": 6, "genre": 3})),
    ("model.numeric", 0.1, (False,)),
    ("model.slice_mode", 0.35, ("field_slice", "table_row_slice", "table_column_slice")),
    ("model.first_layer", 0.6, ("plain", "unique_rows")),
    ("model.precision", 0.1, ("bf16",)),
    ("model.wide_loss_l1", 0.2, (0.001,)),
    ("model.deep_loss_l2", 0.25, (0.01,)),
    ("model.dense_loss_l2", 0.25, (0.01,)),
    ("model.positive_weight", 0.1, (2,)),
    ("model.dense_init", 0.2, ("he_normal",)),
    ("train.batch_size", 1, (60, 96, 101)),
    ("train.epochs", 1, (1, 2)),
    ("train.cache_refresh_steps", 0.1, (1, 3)),
    ("train.metrics", 0.2, (["auc"], ["logloss", "ece", "pr_auc"], ["rmse"], ["group_auc", "hr@3", "ndcg@2"])),
    ("train.lookahead", 0.4, (1, 2, 4)),
    ("train.micro_batches", 0.1, (2, 3)),
    ("train.clip_norm", 0.3, (0.05, 1)),
    ("train.clip_value", 0.2, (0.001, 0.1)),
    ("train.eval_each_epoch", 0.2, (False,)),
    ("train.eval_every_steps", 0.2, (2, 3)),
    ("train.evals_per_epoch", 0.1, (2,)),
    ("parallel.wire", 0.12, ("fp16", "bf16")),
    ("parallel.dense_exchange", 0.45, ("allreduce",)),
    ("parallel.interleave_num", 0.08, (2, 3)),
    ("parallel.gradients_mean", 0.05, (False,)),
    ("parallel.cross_batch", 0.03, (True,)),
    ("parallel.dataset_strategy", 0.05, ("full_batch",)),
    ("checkpoint.every_steps", 0.3, (2, 3)),
    ("checkpoint.delta_every_steps", 0.25, (1, 2)),
    ("checkpoint.every_epochs", 0.2, (1,)),
    ("checkpoint.keep", 0.3, (1, 3)),
    ("checkpoint.keep_best", 0.3, (False,)),
    ("cluster.shards", 0.4, (1, 4, 64)),
    ("cluster.replicas", 0.15, (1,)),
    ("cluster.memory_limit", 0.15, ("24MiB",)),
    ("cluster.pushes_in_flight_max", 0.1, (1,)),
)

# Of dense gradients by allreduce.
REDUCED = (
    ("parallel.enable_parallel_optimizer", 0.4, (True,)),
    ("parallel.parallel_optimizer_config", 0.4, ({"parallel_optimizer_threshold": 0},)),
    ("parallel.gradient_fp32_sync", 0.15, (False,)),
    ("parallel.comm_fusion", 0.3, ({"openstate": False}, {"allreduce": {"mode": "index", "config": [1, 2]}})),
    ("parallel.parallel_mode", 0.12, ("semi_auto_parallel", "auto_parallel")),
)


def put(job, key, value):
    at = job
    *folders, name = key.split(".")
    for folder in folders:
        at = at.setdefault(folder, {})
    at[name] = value


def look(job, key, default=None):
    at = job
    for part in key.split("."):
        if not isinstance(at, dict) or part not in at:
            return default
        at = at[part]
    return at


def draw_choices(draw, job, choices):
    for key, share, values in choices:
        if draw.random() < share:
            put(job, key, draw.choice(values))


def draw_watches(draw, job):
    """What ends a job, or lets its rates fall, after an evaluation."""
    watch = draw.choices((None, "early_stop", "plateau"), (8, 1, 1))[0]
    if watch is not None:
        job["train"].update({"eval_every_steps": 2, watch: {"patience": 1}})


def draw_job(draw, folder):
    """A job as a dict; not all of them are accepted. `folder` is that of write_data."""
    job = {"name": "drawn", "data": {}, "model": {}, "train": {}, "parallel": {"gradients_mean": True}}
    form = draw.choices(("csv", "criteo", "libsvm", "libffm", "libfm"), (8, 1, 1, 1, 1))[0]
    if form == "csv" and draw.random() < 0.45:
        job["model"], labels = model_of_columns(draw, draw.choice(OF_COLUMNS))
    else:
        job["model"], labels = {"type": draw.choice(RECIPES)}, ("click",)
    if form == "csv":
        job["data"] = csv_data(draw, folder, labels)
    elif form == "criteo":
        job["data"] = criteo_data(folder)
    else:
        job["data"] = indexed_data(folder, form)
    losses(draw, job["data"], job["model"])
    chosen = [c for c in CHOICES if job["model"]["type"] != "graph" or not c[0].startswith("model.")]
    draw_choices(draw, job, chosen)
    for place in ("wide", "deep", "dense"):
        if place == "dense" or job["model"]["type"] not in ("graph", "mlp"):
            job["model"][f"{place}_optimizer"] = rule(draw, *(("lamb",) if place == "dense" else ()))
    if draw.random() < 0.3:
        job["train"]["schedule"] = schedule(draw)
    if look(job, "parallel.dense_exchange") == "allreduce":
        draw_choices(draw, job, REDUCED)
    draw_watches(draw, job)
    return job
