"""A graph with every layer that a job may have, and data for it."""
import random
import re

import harness

# The kinds of all built-in layers.
LAYERS = set(re.findall(r"^HDPS_LAYER\((\w+),", (harness.ROOT / "common" / "job" / "layers" / "layer_list.def").read_text(),
                        re.M))


def every_data(folder):
    """Rows with several values, none, and more than a sequence holds; evaluation has values that training lacks."""
    draw = random.Random(3)
    for name, rows, ids in (("train", 800, 20), ("eval", 1000, 26)):
        lines = []
        for _ in range(rows):
            user, item = draw.randrange(ids), draw.randrange(ids)
            tags = "|".join(f"t{draw.randrange(ids)}" for _ in range(draw.randrange(4)))
            history = "|".join(f"i{draw.randrange(ids)}" for _ in range(draw.randrange(8)))
            lines.append(f"{int((user + item) % 3 == 0)},u{user},i{item},{tags},{history},"
                         f"{draw.uniform(0, 9):.2f},{draw.uniform(-1, 1):.2f}\n")
        (folder / f"{name}.csv").write_text("".join(lines))
    return {"train": [str(folder / "train.csv")], "eval": [str(folder / "eval.csv")], "columns": [
        {"name": "click", "type": "label"}, {"name": "user"}, {"name": "item"}, {"name": "tags", "type": "multi"},
        {"name": "history", "type": "multi", "vocabulary": "item"}, {"name": "price", "type": "numeric"},
        {"name": "age", "type": "numeric"}]}


def every_layer():
    """Layers as (name, kind, inputs, settings)."""
    deep = {"table": "deep"}
    three = {**deep, "features": ["user", "item", "tags"]}
    history = {**deep, "features": ["history"], "length": 5}
    return [
        ("wide", "embedding", [], {"table": "wide", "combine": "sum"}),
        ("e", "embedding", [], three),
        ("mean", "embedding", [], {**deep, "features": ["tags", "user"], "pooling": "mean", "combine": "sum"}),
        ("max", "embedding", [], {**deep, "features": ["tags"], "pooling": "max"}),
        ("user", "embedding", [], {**deep, "features": ["user"]}),
        ("target", "embedding", [], {**deep, "features": ["item"]}),
        ("numbers", "numeric", [], {}),
        ("bn", "batch_norm", ["numbers"], {}),
        ("fm", "fm", ["e"], {}), ("pairs", "pair_sum", ["e"], {}), ("outer", "outer", ["e"], {}),
        ("means", "vector_means", ["e"], {}),
        ("gates", "dense", ["means"], {"units": 3, "activation": "sigmoid"}),
        ("scaled", "scale_vectors", ["e", "gates"], {}),
        *[(f"bilinear_{word}", "bilinear", ["scaled"], {"matrices": word}) for word in ("each", "all", "interaction")],
        ("cin_half", "cin", ["e"], {"units": 4, "levels": 3}),
        ("cin_none", "cin", ["e"], {"units": 3, "levels": 2, "split": "none"}),
        ("bottom", "dense", ["bn"], {"units": 8, "activation": "relu"}),
        ("dots", "dot", ["e", "bottom"], {}), ("plain_dots", "dot", ["e"], {}),
        ("x", "concat", ["e", "bn", "mean"], {}),
        ("cross", "cross", ["x"], {"units": 2}),
        ("mix", "cross_mix", ["x"], {"units": 2, "experts": 2, "rank": 3}),
        ("attended", "attention", ["e"], {"units": 6, "heads": 2}),
        ("again", "attention", ["attended"], {"units": 4, "heads": 1}),
        ("history", "sequence", [], history),
        ("din", "din", ["history", "target"], {"units": 6, "activation": "tanh"}),
        ("din_softmax", "din", ["history", "target"], {"units": 6, "activation": "gelu", "scores": "softmax"}),
        ("placed", "positions", ["history", "target"], {}),
        ("block", "transformer", ["placed"], {"units": 6, "heads": 2, "activation": "leaky_relu"}),
        ("followed", "last_vector", ["block"], {}),
        ("alone", "positions", ["history"], {}),
        ("causal", "transformer", ["alone"],
         {"units": 5, "heads": 4, "activation": "relu", "sees": "earlier", "norm": "before"}),
        # The last vector sees all others in any case; what these saw shows in a second block.
        ("causal_again", "transformer", ["causal"],
         {"units": 3, "heads": 1, "activation": "relu", "sees": "earlier", "norm": "before"}),
        ("last", "last_vector", ["causal_again"], {}),
        ("gru", "gru", ["history"], {"units": 8}), ("next", "next_item", ["gru", "history"], {}),
        ("augru", "gru", ["next", "target"], {"units": 7}), ("interest", "last_vector", ["augru"], {}),
        ("gelu", "activation", ["pairs"], {"activation": "gelu"}),
        ("normal", "layer_norm", ["outer"], {}), ("dropped", "dropout", ["normal"], {"rate": 0.3}),
        ("experts", "dense", ["x"], {"units": 12, "activation": "leaky_relu"}), ("gate", "dense", ["x"], {"units": 3}),
        ("mixed", "mixture", ["experts", "gate"], {}),
        ("left", "normalize", ["user"], {"temperature": 0.5}), ("right", "normalize", ["target"], {}),
        ("inner", "inner", ["left", "right"], {}), ("towers", "towers", ["left", "right"], {}),
        ("a", "dense", ["mixed"], {"units": 1}), ("b", "dense", ["x"], {"units": 1}), ("joint", "joint", ["a", "b"], {}),
        ("all", "concat", ["max", "bilinear_each", "bilinear_all", "bilinear_interaction", "cin_half", "cin_none", "dots",
                           "plain_dots", "cross", "mix", "again", "din", "din_softmax", "followed", "last", "interest",
                           "gelu", "dropped", "mixed", "towers"], {}),
        ("top", "dense", ["all"], {"units": 1}), ("shifted", "bias", ["top"], {}),
        ("logit", "sum", ["wide", "fm", "inner", "joint", "shifted"], {}),
    ]


def every_job(folder):
    layers = [{"name": name, "kind": kind, **({"inputs": inputs} if inputs else {}), **settings}
              for name, kind, inputs, settings in every_layer()]
    return {"name": "every", "seed": 1, "data": every_data(folder),
            "model": {"type": "graph", "device": "cpu", "layers": layers, "tables": [
                {"name": name, "dim": dim, "init": {"kind": "normal", "scale": 0.3},
                 "optimizer": {"kind": "adagrad", "learning_rate": 0.1}} for name, dim in (("deep", 8), ("wide", 1))],
                      "dense_optimizer": {"kind": "adam", "learning_rate": 0.01}},
            "train": {"batch_size": 100, "epochs": 2}}
