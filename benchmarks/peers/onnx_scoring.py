"""Scores rows of an exported model by onnxruntime in this process, and prints figures as JSON; needs onnxruntime and NumPy.

  build/peers_venv_serving/bin/python benchmarks/peers/onnx_scoring.py FOLDER [--rows=32] [--seconds=3] [--calls=1]

FOLDER is what hdps export --format=onnx wrote. Its check.safetensors has the rows, with their keys and numbers ready, so
nothing is hashed here. Calls run side by side on threads, each of which computes alone.
"""
import argparse
import json
import pathlib
import threading
import time

import numpy
import onnxruntime

DTYPES = {"I64": numpy.int64, "F32": numpy.float32}


def tensors_of(path):
    """The tensors of a safetensors file by name."""
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:begin])
    header.pop("__metadata__", None)
    return {name: numpy.frombuffer(data[begin + of["data_offsets"][0]:begin + of["data_offsets"][1]],
                                   DTYPES[of["dtype"]]).reshape(of["shape"]) for name, of in header.items()}


def session_of(model):
    """As the documentation of onnxruntime advises for many calls at once: each call computes on its own thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def batches_of(folder, session, rows):
    """The inputs of whole batches."""
    tensors = tensors_of(pathlib.Path(folder) / "check.safetensors")
    names = [one.name for one in session.get_inputs()]
    count = len(tensors[names[0]])
    return [{name: numpy.ascontiguousarray(tensors[name][at:at + rows]) for name in names}
            for at in range(0, count - rows + 1, rows)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--calls", type=int, default=1)
    asked = parser.parse_args()
    session = session_of(asked.folder / "model.onnx")
    batches = batches_of(asked.folder, session, asked.rows)
    session.run(["probability"], batches[0])
    latencies = [[] for _ in range(asked.calls)]
    begin = time.perf_counter()

    def score(of_call):
        now = time.perf_counter()
        while now < begin + asked.seconds:
            session.run(["probability"], batches[len(of_call) % len(batches)])
            of_call.append(time.perf_counter() - now)
            now += of_call[-1]

    threads = [threading.Thread(target=score, args=(of_call,)) for of_call in latencies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - begin
    all_ms = sorted(1000 * one for of_call in latencies for one in of_call)
    print(json.dumps({"rows_a_second": asked.rows * len(all_ms) / seconds, "p50_ms": all_ms[len(all_ms) // 2],
                      "p99_ms": all_ms[len(all_ms) * 99 // 100], "version": f"onnxruntime {onnxruntime.__version__}"}))


if __name__ == "__main__":
    main()
