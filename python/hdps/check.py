"""Computes the outputs of an exported model again, and compares them with those of hdps.

python -m hdps.check DIR

DIR is a folder of hdps export. With model.onnx onnxruntime computes, otherwise NumPy alone: then this
file is all that is needed, and it shows what an exported model means.
"""
import json
import math
import pathlib
import sys

import numpy as np

DTYPES = {"I64": np.dtype("<i8"), "F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "U8": np.dtype("u1")}


class Safetensors(dict):
    """The tensors of a safetensors file by name, as views of its bytes; `metadata` are its texts."""

    def __init__(self, path):
        super().__init__()
        size = int(np.fromfile(path, "<u8", 1)[0])
        with open(path, "rb") as file:
            file.seek(8)
            header = json.loads(file.read(size))
        self.metadata = header.pop("__metadata__", {})
        for name, tensor in header.items():
            begin, end = tensor["data_offsets"]
            if tensor["dtype"] == "BF16":  # The upper half of a float.
                halves = self._view(path, 8 + size + begin, end - begin, np.dtype("<u2"))
                values = (halves.astype(np.uint32) << 16).view(np.float32)
            else:
                values = self._view(path, 8 + size + begin, end - begin, DTYPES[tensor["dtype"]])
            self[name] = values.reshape(tensor["shape"])

    @staticmethod
    def _view(path, offset, size, dtype):
        if size == 0:
            return np.zeros(0, dtype)
        return np.memmap(path, dtype, "r", offset, (size // dtype.itemsize,))


def load(folder):
    """The tensors of all files of an export together."""
    index = folder / "model.safetensors.index.json"
    if not index.exists():
        return Safetensors(folder / "model.safetensors")
    names = sorted(set(json.loads(index.read_text())["weight_map"].values()))
    model = Safetensors(folder / names[0])
    for name in names[1:]:
        model.update(Safetensors(folder / name))
    return model


def rows_of(model, table, keys):
    """The rows of `keys`, any shape; zeros where the table has none. [keys..., dim]"""
    known, weights = model[table + ".keys"].view(np.uint64), model[table + ".weights"]
    rows = np.zeros(keys.shape + weights.shape[1:], np.float32)
    if len(known):
        at = np.minimum(np.searchsorted(known, keys.view(np.uint64)), len(known) - 1)
        there = known[at] == keys.view(np.uint64)
        rows[there] = weights[at[there]]
    return rows


def bag_of(model, layer, batch, feature):
    """The rows of a feature's values times their weights [n, values, dim], and which of them there are."""
    keys, weights = batch[feature], batch[feature + ".weight"]
    # Places without a value have key 0 and weight 0; a value may have these too, but adds nothing.
    return rows_of(model, layer["table"], keys) * weights[:, :, None], (keys != 0) | (weights != 0)


def embedding(model, layer, batch, _):
    """Pools the rows of each feature; puts features side by side, or adds them. [n, width]"""
    layer["dim"] = model[layer["table"] + ".weights"].shape[1]
    pooled = []
    for feature in layer["features"] or json.loads(model.metadata["keys"]):
        rows, there = bag_of(model, layer, batch, feature)
        if layer["pooling"] == "max":
            largest = np.where(there[:, :, None], rows, -np.inf).max(axis=1)
            pooled.append(np.where(there.any(axis=1)[:, None], largest, 0).astype(np.float32))
            continue
        total = np.where(there[:, :, None], rows, 0).sum(axis=1)
        if layer["pooling"] == "mean":
            total = total / np.maximum(there.sum(axis=1), 1)[:, None].astype(np.float32)
        pooled.append(total)
    return sum(pooled) if layer["combine"] == "sum" else np.concatenate(pooled, axis=1)


def erf(x):
    """The error function in double; math.erf takes single numbers."""
    return np.vectorize(math.erf, otypes=[np.float64])(x)


ACTIVATIONS = {
    "none": lambda z: z,
    "relu": lambda z: np.maximum(z, 0),
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "tanh": np.tanh,
    "gelu": lambda z: z * 0.5 * (1 + erf(z / math.sqrt(2))),
    "leaky_relu": lambda z: np.where(z > 0, z, 0.01 * z),
}


def dense(model, layer, _, inputs):
    z = inputs[0] @ tensor(model, layer, "weight") + tensor(model, layer, "bias")
    return ACTIVATIONS[layer["activation"]](z)


# ---- Interactions of the vectors of an embedding.


def vectors_of(layer, x):
    """The vectors of an embedding side by side. [n, vectors, dim]"""
    return x.reshape(len(x), -1, layer["dim"])


def flat(vectors):
    return vectors.reshape(len(vectors), -1)


def pair_sum(_, layer, __, inputs):
    """Half of the square of the sum less the sum of squares (He and Chua 2017, eq. 4). [n, dim]"""
    v = vectors_of(layer, inputs[0])
    return 0.5 * (v.sum(axis=1) ** 2 - (v**2).sum(axis=1))


def fm(*layer):
    """The same, added up (Rendle 2010, eq. 5). [n, 1]"""
    return pair_sum(*layer).sum(axis=1, keepdims=True)


def outer(_, layer, __, inputs):
    """The sum of the vectors times itself (Qu et al. 2016, eq. 12). [n, dim x dim]"""
    total = vectors_of(layer, inputs[0]).sum(axis=1)
    return flat(total[:, :, None] * total[:, None, :])


def cross(model, layer, _, inputs):
    """x_{l+1} = x_0 * (x_l W_l + b_l) + x_l (Wang et al. 2021, eq. 1)."""
    x = inputs[0]
    for level in range(layer["units"]):
        product = x @ tensor(model, layer, f"weight{level}") + tensor(model, layer, f"bias{level}")
        x = inputs[0] * product + x
    return x


def cross_mix(model, layer, _, inputs):
    """The same with W of low rank, a mixture of experts (Wang et al. 2021, eq. 4)."""
    x, experts = inputs[0], int(layer["experts"])
    for level in range(layer["units"]):
        down, core, up, bias, gate = (
            tensor(model, layer, f"{name}{level}") for name in ("down", "core", "up", "bias", "gate")
        )
        low = np.tanh(x @ down).reshape(len(x), experts, -1)
        low = np.tanh(np.einsum("nei,eij->nej", low, core.reshape(experts, -1, core.shape[1])))
        x = inputs[0] * (flat(low * softmax(x @ gate)[:, :, None]) @ up + bias) + x
    return x


def cin(model, layer, _, inputs):
    """Products of the maps of a level with all vectors, mixed and added up (Lian et al. 2018, eq. 6 to 8)."""
    first = before = vectors_of(layer, inputs[0])
    outputs, levels, half = [], int(layer["levels"]), layer["units"] // 2
    for level in range(levels):
        weight = tensor(model, layer, f"weight{level}")
        before = before[:, : len(weight) // first.shape[1]]
        products = (before[:, :, None] * first[:, None]).reshape(len(first), len(weight), -1)
        before = np.einsum("npd,pm->nmd", products, weight)
        cut = half if layer.get("split", "half") == "half" and level + 1 < levels else 0
        outputs.append(before[:, cut:].sum(axis=2))
    return np.concatenate(outputs, axis=1)


def bilinear(model, layer, _, inputs):
    """v_a W * v_b for a < b, with one W, one of each a, or one of each pair (Huang et al. 2019, eq. 6 to 8)."""
    v = vectors_of(layer, inputs[0])
    a, b = np.triu_indices(v.shape[1], 1)
    weights = tensor(model, layer, "weight").reshape(layer["dim"], -1, layer["dim"])  # [dim, matrices, dim]
    which = {"all": 0 * a, "each": a, "interaction": np.arange(len(a))}[layer.get("matrices", "each")]
    return flat(np.einsum("npi,ipj->npj", v[:, a], weights[:, which]) * v[:, b])


def dot(_, layer, __, inputs):
    """<v_a, v_b> for a = 1 .. V - 1, b = 0 .. a - 1, where the dense vector is v_0 if there is one."""
    v = vectors_of(layer, inputs[0])
    if len(inputs) == 2:
        v = np.concatenate([inputs[1][:, None, :], v], axis=1)
    a, b = np.tril_indices(v.shape[1], -1)
    return (v @ v.transpose(0, 2, 1))[:, a, b]


def softmax(z, there=True):
    """Shares along the last axis of what is there; 0 for all else, and where nothing is."""
    there = np.broadcast_to(there, z.shape)
    top = z.max(axis=-1, keepdims=True, where=there, initial=-1e300)
    e = np.exp(np.where(there, z - top, -np.inf))
    return e / np.maximum(e.sum(axis=-1, keepdims=True), 1e-300)


def attend(queries, keys, values, heads, scale=1.0, there=True):
    """Attention in heads, [n, vectors, units]; `there` [n, 1, vectors, vectors] (Vaswani et al. 2017, eq. 1)."""
    q, k, v = (x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3) for x in (queries, keys, values))
    shares = softmax(scale * (q @ k.transpose(0, 1, 3, 2)), there)
    return (shares @ v).transpose(0, 2, 1, 3).reshape(values.shape)


def attention(model, layer, _, inputs):
    """relu(attended + v W) for each vector (Song et al. 2019, eq. 5 to 8)."""
    v = vectors_of(layer, inputs[0])
    q, k, values, rest = (v @ tensor(model, layer, name) for name in ("query", "key", "value", "residual"))
    layer["dim"] = layer["units"]
    return flat(np.maximum(attend(q, k, values, int(layer["heads"])) + rest, 0))


def scale_vectors(_, layer, __, inputs):
    """Each vector times a number of its own (Huang et al. 2019, eq. 5)."""
    return flat(vectors_of(layer, inputs[0]) * inputs[1][:, :, None])


# ---- Sequences: vectors of the first `count` places, zeros behind them.


def seen(layer, places):
    """Which of so many places have a vector. [n, places]"""
    return np.arange(places) < layer["count"][:, None]


def sequence(model, layer, batch, _):
    """The rows of the last `length` values of a feature. [n, length x dim]"""
    rows, there = bag_of(model, layer, batch, layer["features"][0])
    length, total = int(layer["length"]), there.sum(axis=1)
    layer["dim"], layer["count"] = rows.shape[2], np.minimum(total, length)
    rows = np.concatenate([rows, np.zeros((len(rows), length, rows.shape[2]))], axis=1)
    places = (total - layer["count"])[:, None] + np.arange(length)
    return flat(np.take_along_axis(rows, places[:, :, None], axis=1) * seen(layer, length)[:, :, None])


def last_vector(_, layer, __, inputs):
    """The vector of the last place that has one; 0 without any. [n, dim]"""
    v = vectors_of(layer, inputs[0])
    return (v * (np.arange(v.shape[1]) == layer["count"][:, None] - 1)[:, :, None]).sum(axis=1)


def positions(model, layer, _, inputs):
    """Adds a vector of its place to each, counted from the end; a second input becomes the last vector of the sequence."""
    v, learned = vectors_of(layer, inputs[0]), tensor(model, layer, "weight")
    if len(inputs) == 2:
        v = np.concatenate([v, 0 * inputs[1][:, None]], axis=1)
        layer["count"] = layer["count"] + 1
        v[np.arange(len(v)), layer["count"] - 1] = inputs[1]
    places = np.arange(len(learned)) + len(learned) - layer["count"][:, None]
    v = v + learned[np.minimum(places, len(learned) - 1)]
    return flat(v * seen(layer, len(learned))[:, :, None])


def transformer(model, layer, _, inputs):
    """Attention and an MLP, each added to what it reads, normalized before or after (Vaswani et al. 2017, eq. 1 and 2)."""
    v = vectors_of(layer, inputs[0])
    weight = {name: tensor(model, layer, name) for name in ("query", "key", "value", "output", "weight", "bias",
                                                            "hidden_weight", "hidden_bias")}
    there = seen(layer, v.shape[1])
    sees = there[:, None, None, :]
    if layer.get("sees") == "earlier":
        sees = sees & np.tri(v.shape[1], dtype=bool)

    def attended(x):
        q, k, values = (x @ weight[name] for name in ("query", "key", "value"))
        heads = int(layer["heads"])
        return attend(q, k, values, heads, (layer["dim"] / heads) ** -0.5, sees) @ weight["output"]

    def mlp(x):
        hidden = ACTIVATIONS[layer["activation"]](x @ weight["hidden_weight"] + weight["hidden_bias"])
        return hidden @ weight["weight"] + weight["bias"]

    for part, name in ((attended, "attention"), (mlp, "mlp")):
        gain, shift = tensor(model, layer, f"{name}_gain"), tensor(model, layer, f"{name}_shift")
        if layer.get("norm") == "before":
            v = v + part(normal(v, 1e-5) * gain + shift)
        else:
            v = normal(v + part(v), 1e-5) * gain + shift
    return flat(v * there[:, :, None])


def din(model, layer, _, inputs):
    """The vectors k of a sequence, each times act([k, t, k - t, k t] W + b) w, added up (Zhou et al. 2018, eq. 3)."""
    k = vectors_of(layer, inputs[0])
    t = np.broadcast_to(inputs[1][:, None], k.shape)
    hidden = np.concatenate([k, t, k - t, k * t], axis=2) @ tensor(model, layer, "weight") + tensor(model, layer, "bias")
    scores = (ACTIVATIONS[layer["activation"]](hidden) @ tensor(model, layer, "score"))[:, :, 0]
    there = seen(layer, k.shape[1])
    if layer.get("scores") == "softmax":
        shares = softmax(scores, there)
    else:
        shares = (scores + tensor(model, layer, "score_bias")) * there
    return (shares[:, :, None] * k).sum(axis=1)


def gru(model, layer, _, inputs):
    """A state a step; by attention to a second input it changes less (GRU and AUGRU, Zhou et al. 2019)."""
    v = vectors_of(layer, inputs[0])
    there, units = seen(layer, v.shape[1]), layer["units"]
    share = np.ones(there.shape)
    if len(inputs) == 2:
        question = inputs[1] @ tensor(model, layer, "attention").T
        share = softmax(np.einsum("npd,nd->np", v, question), there)
    of_inputs = v @ tensor(model, layer, "input") + tensor(model, layer, "bias")
    state, states = np.zeros((len(v), units)), []
    for step in range(v.shape[1]):
        (xu, xr, xc), (hu, hr, hc) = (np.split(x, 3, axis=1) for x in (
            of_inputs[:, step], state @ tensor(model, layer, "state")))
        update = share[:, step, None] * ACTIVATIONS["sigmoid"](xu + hu)
        state = (1 - update) * state + update * np.tanh(xc + ACTIVATIONS["sigmoid"](xr + hr) * hc)
        states.append(state)
    layer["dim"] = units
    return flat(np.stack(states, axis=1) * there[:, :, None])


# ---- Towers, tasks, and what normalizes.


def normalize(_, layer, __, inputs):
    """Rows of the length 1 / temperature (Yi et al. 2019, section 3)."""
    length = np.sqrt((inputs[0] ** 2).sum(axis=1, keepdims=True))
    return inputs[0] / np.maximum(length, 1e-12) / layer["temperature"]


def mixture(_, __, ___, inputs):
    """Experts side by side, by the softmax of a gate (MMoE, Ma et al. 2018, eq. 6 and 7)."""
    shares = softmax(inputs[1])
    return np.einsum("ne,new->nw", shares, inputs[0].reshape(*shares.shape, -1))


def joint(_, __, ___, inputs):
    """The logit of both events, log(p q / (1 - p q)) of the logits of p and q (ESMM, Ma et al. 2018, eq. 1)."""
    a, b = -inputs[0], -inputs[1]
    return -np.logaddexp(np.logaddexp(a, b), a + b)


def normal(x, epsilon):
    """Less the mean, by the deviation, along the last axis."""
    apart = x - x.mean(axis=-1, keepdims=True)
    return apart / np.sqrt((apart**2).mean(axis=-1, keepdims=True) + epsilon)


def layer_norm(model, layer, _, inputs):
    return normal(inputs[0], layer["epsilon"]) * tensor(model, layer, "gain") + tensor(model, layer, "bias")


def batch_norm(model, layer, _, inputs):
    """With the running mean and variance, as in evaluation."""
    factor = tensor(model, layer, "gain") / np.sqrt(tensor(model, layer, "running_variance") + layer["epsilon"])
    return (inputs[0] - tensor(model, layer, "running_mean")) * factor + tensor(model, layer, "bias")


# A layer that changes what a vector is, or how many there are, sets layer["dim"] and layer["count"].
LAYERS = {
    "embedding": embedding,
    "numeric": lambda model, layer, batch, inputs: batch["numeric"].astype(np.float64),
    "concat": lambda model, layer, batch, inputs: np.concatenate(inputs, axis=1),
    "sum": lambda model, layer, batch, inputs: sum(inputs),
    "dense": dense,
    "bias": lambda model, layer, batch, inputs: inputs[0] + tensor(model, layer, "bias"),
    "fm": fm,
    "pair_sum": pair_sum,
    "outer": outer,
    "cross": cross,
    "cross_mix": cross_mix,
    "cin": cin,
    "bilinear": bilinear,
    "dot": dot,
    "attention": attention,
    "vector_means": lambda model, layer, batch, inputs: vectors_of(layer, inputs[0]).mean(axis=2),
    "scale_vectors": scale_vectors,
    "sequence": sequence,
    "last_vector": last_vector,
    "positions": positions,
    "transformer": transformer,
    "din": din,
    "gru": gru,
    "next_item": lambda model, layer, batch, inputs: inputs[0],  # The loss that it adds belongs to training.
    "normalize": normalize,
    "inner": lambda model, layer, batch, inputs: (inputs[0] * inputs[1]).sum(axis=1, keepdims=True),
    "towers": lambda model, layer, batch, inputs: np.concatenate(inputs, axis=1),
    "mixture": mixture,
    "joint": joint,
    "activation": lambda model, layer, batch, inputs: ACTIVATIONS[layer["activation"]](inputs[0]),
    "dropout": lambda model, layer, batch, inputs: inputs[0],
    "layer_norm": layer_norm,
    "batch_norm": batch_norm,
}


def tensor(model, layer, name):
    return model[f"{layer['name']}.{name}"].astype(np.float64)


def logits_of(model, job, batch):
    """Computes the layers of the job in double. Returns [n, width of the last one]."""
    values, dims, counts = {}, {}, {}
    for layer in job["model"]["layers"]:
        name, kind, inputs = layer["name"], layer["kind"], layer.get("inputs", [])
        if kind not in LAYERS:
            raise SystemExit(f"hdps.check: error: layer '{name}' is of the kind '{kind}', which NumPy has no function for "
                             f"here; it has {', '.join(LAYERS)}")
        if inputs:
            layer["dim"], layer["count"] = dims[inputs[0]], counts[inputs[0]]
        values[name] = LAYERS[kind](model, layer, batch, [values[given] for given in inputs])
        dims[name], counts[name] = layer.get("dim"), layer.get("count")
    return values[name]


def scores_of(job, logits):
    """The scores as check.safetensors has them: probabilities of classes, products of two vectors, or logits."""
    if job["model"]["loss"] == "softmax":
        return softmax(logits)
    if job["model"]["loss"] == "sampled_softmax":
        user, item = np.split(logits, 2, axis=1)
        return (user * item).sum(axis=1, keepdims=True)
    return logits


def check_numpy(folder):
    """Returns the largest difference from hdps' scores, and the number of rows."""
    model, check = load(folder), Safetensors(folder / "check.safetensors")
    job = json.loads(model.metadata["job"])
    batch = {name: np.array(values) for name, values in check.items()}
    scores = scores_of(job, logits_of(model, job, batch))
    return float(np.abs(scores - check["scores"]).max()), len(scores)


def check_onnx(folder):
    """The same with onnxruntime."""
    try:
        import onnxruntime
    except ImportError:
        raise SystemExit("hdps.check: error: model.onnx needs onnxruntime: pip install onnxruntime") from None
    check = Safetensors(folder / "check.safetensors")
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    missing = [given.name for given in session.get_inputs() if given.name not in check]
    if missing:
        raise SystemExit(f"hdps.check: error: the model was exported with --tables=outside, and nothing here pools rows "
                         f"for its inputs {', '.join(missing)}")
    inputs = {given.name: np.array(check[given.name]) for given in session.get_inputs()}
    outputs = [output.name for output in session.get_outputs()]
    wanted = next(name for name in ("probabilities", "logit", "score") if name in outputs)
    scores = session.run([wanted], inputs)[0].reshape(check["scores"].shape)
    return float(np.abs(scores - check["scores"]).max()), len(scores)


def main(arguments):
    if len(arguments) != 1 or arguments[0] in ("-h", "--help"):
        print(__doc__.strip())
        return 0 if arguments else 2
    folder = pathlib.Path(arguments[0])
    if not (folder / "check.safetensors").exists():
        print(f"hdps.check: error: {folder} has no check.safetensors: expected a folder of hdps export",
              file=sys.stderr)
        return 2
    onnx = (folder / "model.onnx").exists()
    largest, rows = (check_onnx if onnx else check_numpy)(folder)
    print(f"{rows} rows by {'onnxruntime' if onnx else 'NumPy'}: the largest difference is {largest:.3g}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
