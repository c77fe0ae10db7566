"""Runs exported models by onnxruntime and NumPy alone, in an interpreter that has both: FOLDER... -> a line of JSON each.

A FOLDER holds `inside` and `outside`, one checkpoint exported with its tables inside and outside, and `tables`, the
same as safetensors, which NumPy alone computes too. `inside` may have companions, as `inside_large`, which are to give the same.
"""
import json
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python" / "hdps"))
import check as check_alone

DTYPES = {"I64": np.int64, "F32": np.float32}
RANDOM_IDS = 100_000


def safetensors(path):
    """The tensors of a file by name, and its metadata."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + length])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, tensor in header.items():
        begin, end = (8 + length + at for at in tensor["data_offsets"])
        tensors[name] = np.frombuffer(data[begin:end], DTYPES[tensor["dtype"]]).reshape(tensor["shape"])
    return tensors, metadata


def session(folder):
    import onnxruntime  # Not needed by opencv_session.py.

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])


def run(model, inputs):
    """The outputs by name, of those inputs that the model has."""
    names = [output.name for output in model.get_outputs()]
    wanted = {need.name for need in model.get_inputs()}
    missing = wanted - set(inputs)
    assert not missing, f"nothing to give to {missing}"
    return dict(zip(names, model.run(names, {name: inputs[name] for name in wanted})))


def scores_of(outputs):
    """As check.safetensors has them: logits but for classes and for products of two vectors."""
    for name in ("probabilities", "logit", "score"):
        if name in outputs:
            return outputs[name]
    raise AssertionError(sorted(outputs))


def apart(scores, check):
    """The largest difference from hdps, as a share of numbers above 1."""
    wanted = check["scores"].reshape(scores.shape)
    return float(np.max(np.abs(scores - wanted) / np.maximum(1, np.abs(wanted))))


def with_random_ids(model, inputs, draw):
    """How far outputs with keys that no table has are apart, for rows that are alike but for these keys."""
    most, given = 0.0, 0
    keys = [need.name for need in model.get_inputs() if need.type == "tensor(int64)"]
    for width in (1, 3):
        rows = 64
        while given < RANDOM_IDS * width // 3 and keys:
            alike = {name: np.repeat(value[:1], rows, axis=0) for name, value in inputs.items()}
            for name in keys:
                shape = (rows, width if name + ".weight" in wanted_by(model) else 1)
                alike[name] = draw.integers(-2**63, 2**63 - 1, shape, dtype=np.int64, endpoint=True)
                alike[name + ".weight"] = np.ones(shape, np.float32)
                given += alike[name].size
            outputs = scores_of(run(model, alike))
            assert np.all(np.isfinite(outputs))
            most = max(most, float(np.max(np.abs(outputs - outputs[:1]))))
    return given, most


def lists_of(model):
    """Inputs of features with several values: their keys and weights."""
    weights = {name for name in wanted_by(model) if name.endswith(".weight")}
    return weights | {name[:-len(".weight")] for name in weights}


def wanted_by(model):
    return {need.name for need in model.get_inputs()}


# ---- Pooled rows, as a program would make them that keeps the tables itself.


class Tables:
    def __init__(self, tensors, job):
        self.job = job
        self.rows = {}
        for name in tensors:
            if name.endswith(".keys"):
                table = name[:-len(".keys")]
                self.rows[table] = dict(zip(tensors[name].tolist(), tensors[table + ".weights"]))
                self.dim = {**getattr(self, "dim", {}), table: tensors[table + ".weights"].shape[1]}

    def read(self, table, keys, weights):
        """The rows of one example's values, each times its weight."""
        zeros = np.zeros(self.dim[table], np.float32)
        rows = [weight * self.rows[table].get(key, zeros)
                for key, weight in zip(keys.tolist(), weights.tolist()) if weight != 0]
        return np.array(rows, np.float32).reshape(len(rows), self.dim[table])

    def pooled(self, layer, check, features):
        pooling = layer.get("pooling", "sum")
        vectors = []
        for feature in layer.get("features") or features:
            of_examples = []
            for keys, weights in zip(check[feature], check[feature + ".weight"]):
                rows = self.read(layer["table"], keys, weights)
                zeros = np.zeros(rows.shape[1], np.float32)
                of_examples.append(zeros if not len(rows) else {"sum": np.sum, "mean": np.mean, "max": np.max}[pooling](
                    rows, axis=0))
            vectors.append(np.array(of_examples, np.float32))
        return np.sum(vectors, axis=0) if layer.get("combine") == "sum" else np.concatenate(vectors, axis=1)

    def sequence(self, layer, check):
        """The vectors of each example, the last ones of more than the length, and their number."""
        feature, length, dim = layer["features"][0], int(layer.get("length", 50)), self.dim[layer["table"]]
        values = np.zeros((len(check[feature]), length * dim), np.float32)
        counts = np.zeros((len(check[feature]), 1), np.int64)
        for i, (keys, weights) in enumerate(zip(check[feature], check[feature + ".weight"])):
            rows = self.read(layer["table"], keys, weights)[-length:]
            values[i, :rows.size] = rows.reshape(-1)
            counts[i] = len(rows)
        return values, counts


def outside_inputs(tables, job, check, features):
    inputs = {"numeric": check["numeric"]} if "numeric" in check else {}
    for layer in job["model"]["layers"]:
        if layer.get("kind") == "embedding":
            inputs[layer["name"]] = tables.pooled(layer, check, features)
        if layer.get("kind") == "sequence":
            inputs[layer["name"]], inputs[layer["name"] + ".count"] = tables.sequence(layer, check)
    return inputs


def compare(folder):
    check, _ = safetensors(folder / "inside" / "check.safetensors")
    inside = session(folder / "inside")
    metadata = inside.get_modelmeta().custom_metadata_map
    outputs = run(inside, check)
    found = {"name": folder.name, "rows": len(check["scores"]), "inside": apart(scores_of(outputs), check),
             "outputs": {name: list(value.shape) for name, value in outputs.items()},
             "inputs": sorted(wanted_by(inside)), "metadata": sorted(metadata)}
    if "probability" in outputs:
        made = 1 / (1 + np.exp(-outputs["logit"].astype(np.float64)))
        found["probability"] = float(np.max(np.abs(outputs["probability"] - made)))
    found["random_ids"], found["random_apart"] = with_random_ids(inside, check, np.random.default_rng(1))
    nothing = {name: value[:, :0] if name in lists_of(inside) else value for name, value in check.items()}
    assert np.all(np.isfinite(scores_of(run(inside, nothing)))), "examples without values"
    assert scores_of(run(inside, {name: value[:0] for name, value in check.items()})).size == 0, "no examples"
    one = run(inside, {name: value[:1] for name, value in check.items()})
    found["alone"] = float(np.max(np.abs(scores_of(one) - scores_of(outputs)[:1])))
    for companion in folder.glob("inside_*"):
        same = scores_of(run(session(companion), check))
        found[companion.name] = float(np.max(np.abs(same - scores_of(outputs))))
    if (folder / "outside").exists():
        tensors, of_tables = safetensors(folder / "tables" / "model.safetensors")
        job = json.loads(metadata["job"])
        inputs = outside_inputs(Tables(tensors, job), job, check, list(json.loads(of_tables["keys"])))
        found["numpy"], _ = check_alone.check_numpy(folder / "tables")
        found["outside"] = apart(scores_of(run(session(folder / "outside"), inputs)), check)
    return found


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(json.dumps(compare(pathlib.Path(argument))), flush=True)
