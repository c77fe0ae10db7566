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


def embedding(model, layer, batch, _):
    """Pools the rows of each feature; puts features side by side, or adds them. [n, width]"""
    pooled = []
    for feature in layer["features"] or batch["features"]:
        keys, weights = batch[feature], batch[feature + ".weight"]
        # Places without a value have key 0 and weight 0; a value may have these too, but adds nothing.
        there = (keys != 0) | (weights != 0)
        rows = rows_of(model, layer["table"], keys) * weights[:, :, None]
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


def vectors_of(layer, x):
    """The vectors of an embedding side by side. [n, vectors, dim]"""
    return x.reshape(len(x), -1, layer["vector_dim"])


def fm(_, layer, __, inputs):
    """Half of the square of the sum less the sum of squares (Rendle 2010, eq. 5). [n, 1]"""
    v = vectors_of(layer, inputs[0])
    return 0.5 * (v.sum(axis=1) ** 2 - (v**2).sum(axis=1)).sum(axis=1, keepdims=True)


def cross(model, layer, _, inputs):
    """x_{l+1} = x_0 * (x_l W_l + b_l) + x_l (Wang et al. 2021, eq. 1)."""
    x = inputs[0]
    for level in range(layer["units"]):
        product = x @ tensor(model, layer, f"weight{level}") + tensor(model, layer, f"bias{level}")
        x = inputs[0] * product + x
    return x


def dot(_, layer, __, inputs):
    """<v_a, v_b> for a = 1 .. V - 1, b = 0 .. a - 1, where the dense vector is v_0 if there is one."""
    v = vectors_of(layer, inputs[0])
    if len(inputs) == 2:
        v = np.concatenate([inputs[1][:, None, :], v], axis=1)
    a, b = np.tril_indices(v.shape[1], -1)
    return (v @ v.transpose(0, 2, 1))[:, a, b]


def layer_norm(model, layer, _, inputs):
    x = inputs[0]
    apart = x - x.mean(axis=1, keepdims=True)
    normal = apart / np.sqrt((apart**2).mean(axis=1, keepdims=True) + layer["epsilon"])
    return normal * tensor(model, layer, "gain") + tensor(model, layer, "bias")


def batch_norm(model, layer, _, inputs):
    """With the running mean and variance, as in evaluation."""
    factor = tensor(model, layer, "gain") / np.sqrt(tensor(model, layer, "running_variance") + layer["epsilon"])
    return (inputs[0] - tensor(model, layer, "running_mean")) * factor + tensor(model, layer, "bias")


LAYERS = {
    "embedding": embedding,
    "numeric": lambda model, layer, batch, inputs: batch["numeric"].astype(np.float64),
    "concat": lambda model, layer, batch, inputs: np.concatenate(inputs, axis=1),
    "sum": lambda model, layer, batch, inputs: sum(inputs),
    "dense": dense,
    "bias": lambda model, layer, batch, inputs: inputs[0] + tensor(model, layer, "bias"),
    "fm": fm,
    "cross": cross,
    "dot": dot,
    "activation": lambda model, layer, batch, inputs: ACTIVATIONS[layer["activation"]](inputs[0]),
    "dropout": lambda model, layer, batch, inputs: inputs[0],
    "layer_norm": layer_norm,
    "batch_norm": batch_norm,
}
# Layers that change the numbers of vectors but not what a vector is.
KEEP_VECTORS = {"activation", "dropout", "layer_norm", "batch_norm"}


def tensor(model, layer, name):
    return model[f"{layer['name']}.{name}"].astype(np.float64)


def logits_of(model, job, batch):
    """Computes the layers of the job in double. Returns [n, width of the last one]."""
    values, dims = {}, {}
    tables = {table["name"]: table["dim"] for table in job["model"]["tables"]}
    for layer in job["model"]["layers"]:
        kind = layer["kind"]
        if kind not in LAYERS:
            raise SystemExit(
                f"hdps.check: error: layer '{layer['name']}' is of the kind '{kind}', which NumPy has no "
                f"function for here; it has {', '.join(LAYERS)}. hdps export --format=onnx has all kinds"
            )
        inputs = layer.get("inputs", [])
        layer["vector_dim"] = dims.get(inputs[0]) if inputs else None
        values[layer["name"]] = LAYERS[kind](model, layer, batch, [values[name] for name in inputs])
        if kind == "embedding":
            dims[layer["name"]] = tables[layer["table"]]
        elif kind in KEEP_VECTORS:
            dims[layer["name"]] = layer["vector_dim"]
    return values[layer["name"]]


def scores_of(job, logits):
    """The scores as check.safetensors has them: probabilities of classes, or logits."""
    if job["model"]["loss"] == "softmax":
        e = np.exp(logits - logits.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)
    return logits


def check_numpy(folder):
    """Returns the largest difference from hdps' scores, and the number of rows."""
    model, check = load(folder), Safetensors(folder / "check.safetensors")
    job = json.loads(model.metadata["job"])
    batch = {name: np.array(values) for name, values in check.items()}
    batch["features"] = json.loads(model.metadata["keys"]).keys()
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
    inputs = {given.name: np.array(check[given.name]) for given in session.get_inputs()}
    outputs = [output.name for output in session.get_outputs()]
    wanted = "probabilities" if "probabilities" in outputs else "logit"
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
