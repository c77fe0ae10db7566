#!/usr/bin/env python3
"""Measures what else answers requests for the same model: onnxruntime in a process on the exported model, and MLServer with it,
in turns with hdps serve.

  benchmarks/peers/serving_peers.py --bin=build/bin [--folder=DIR] [--repeats=3] [--seconds=3] [--json=FILE]

The model and the folder are those of benchmarks/serving/serving.py. hdps serve gets texts and numbers, which it parses and
hashes; the peers get the keys ready. Both are asked for batches of 32 rows in JSON by hdps-load. Without the peers
(benchmarks/peers/setup.sh --serving installs them) it prints a note and ends with status 0.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "serving"))
import inference_requests as requests  # noqa: E402
import made_model  # noqa: E402
import serving as of_hdps  # noqa: E402
from measured_server import MODEL, Load, Server, free_port, hdps_server  # noqa: E402

ROWS = 32


def absolute(path):
    return pathlib.Path(path).resolve()


def has_peers(python):
    return shutil.which(python) is not None and subprocess.run(
        [python, "-c", "import numpy, onnxruntime, mlserver"], check=False, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL).returncode == 0


def exported(flags, made):
    """The model with its tables inside, and 1,000 rows of the evaluation data with their keys."""
    folder = flags.folder / "onnx"
    if not (folder / "model.onnx").exists():
        made_model.run(flags.bin / "hdps", "export", f"--checkpoint={made.out}", "--format=onnx", f"--out={folder}",
                       f"--set=data.eval={json.dumps([str(made.eval)])}", "--max_rows=4000000")
    return folder


def tensors_of(path):
    """(shape, numbers) of each tensor of a safetensors file."""
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:begin])
    header.pop("__metadata__", None)
    return {name: (of["shape"], memoryview(data)[begin + of["data_offsets"][0]:begin + of["data_offsets"][1]].cast(
        {"I64": "q", "F32": "f"}[of["dtype"]])) for name, of in header.items()}


def mlserver_requests(host, folder):
    """Whole requests of batches of rows."""
    tensors = {name: of for name, of in tensors_of(folder / "check.safetensors").items()
               if name == "numeric" or name in requests.TEXTS}
    count = tensors["numeric"][0][0]
    messages = []
    for at in range(0, count - ROWS + 1, ROWS):
        inputs = [{"name": name, "shape": [ROWS, shape[1]], "datatype": "FP32" if name == "numeric" else "INT64",
                   "data": numbers[at * shape[1]:(at + ROWS) * shape[1]].tolist()}
                  for name, (shape, numbers) in tensors.items()]
        messages.append(requests.http(host, MODEL, json.dumps({"inputs": inputs}, separators=(",", ":")).encode(),
                                      "Content-Type: application/json"))
    return messages


def mlserver(flags, folder, workers):
    """MLServer with the exported model."""
    place = flags.folder / f"mlserver_{workers}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for name in ("onnx_scoring.py", "mlserver_model.py"):
        shutil.copy(HERE / name, place)
    port = free_port()
    (place / "settings.json").write_text(json.dumps(
        {"host": "127.0.0.1", "http_port": port, "grpc_port": free_port(), "metrics_port": free_port(), "debug": False,
         "parallel_workers": workers, "logging_settings": None}))
    (place / "model-settings.json").write_text(json.dumps(
        {"name": MODEL, "implementation": "mlserver_model.OnnxModel",
         "parameters": {"uri": str((folder / "model.onnx").resolve())}}))
    return Server([pathlib.Path(flags.python).parent / "mlserver", "start", place], port, f"/v2/models/{MODEL}/ready",
                  folder=place)


def in_process(flags, folder, calls):
    return json.loads(made_model.run(flags.python, HERE / "onnx_scoring.py", folder, f"--rows={ROWS}",
                                     f"--seconds={flags.seconds}", f"--calls={calls}"))


def by_requests(server, load, seconds):
    figures = load.run(server, seconds=seconds)
    if figures["failures"]:
        of_hdps.fail(f"{load.name}: {figures['failures']} {figures.get('first_failure', '')}")
    return figures


def measure(flags):
    """Figures of each system, one for each turn."""
    made = made_model.Made(flags.bin, flags.folder / "million", of_hdps.VALUES, of_hdps.TIMES)
    folder = exported(flags, made)
    rows = requests.rows_of(made.eval, 1000)
    found = {}
    with hdps_server(flags.bin, made.out) as ours, mlserver(flags, folder, 0) as theirs, \
            mlserver(flags, folder, 1) as theirs_beside:
        load = Load(flags.bin, flags.folder, "ours",
                    [requests.as_json(ours.host, MODEL, batch) for batch in requests.batches(rows, ROWS)], ROWS)
        peer_loads = {server: Load(flags.bin, flags.folder, f"peer_{number}", mlserver_requests(server.host, folder), ROWS)
                      for number, server in enumerate((theirs, theirs_beside))}
        for _ in range(flags.repeats):
            for name, figures in (
                    ("hdps serve, JSON", by_requests(ours, load, flags.seconds)),
                    ("onnxruntime in process, 1 call", in_process(flags, folder, 1)),
                    ("onnxruntime in process, 2 calls", in_process(flags, folder, 2)),
                    ("MLServer, JSON", by_requests(theirs, peer_loads[theirs], flags.seconds)),
                    ("MLServer with a worker, JSON",
                     by_requests(theirs_beside, peer_loads[theirs_beside], flags.seconds))):
                found.setdefault(name, []).append(figures)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=absolute, default="build/bin", help="folder of hdps and hdps-load")
    parser.add_argument("--folder", type=absolute, default="/tmp/hdps_serving", help="where data and models stay")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--python", default=str(ROOT / "build" / "peers_venv_serving" / "bin" / "python"))
    parser.add_argument("--json", type=pathlib.Path, help="file that gets all figures")
    flags = parser.parse_args()
    if not has_peers(flags.python):
        print(f"serving_peers.py: {flags.python} has no onnxruntime and MLServer; "
              "benchmarks/peers/setup.sh --serving installs them")
        return
    flags.folder.mkdir(parents=True, exist_ok=True)
    found = measure(flags)
    ours = statistics.median(one["rows_a_second"] for one in found["hdps serve, JSON"])
    for name, figures in found.items():
        rate, p50, p99 = (statistics.median(one[of] for one in figures) for of in ("rows_a_second", "p50_ms", "p99_ms"))
        print(f"{name:34} {rate:10,.0f} rows/s {rate / ours:6.2f}   p50 {p50:7.2f} ms   p99 {p99:7.2f} ms")
    result = json.dumps({"cores": os.cpu_count(), "figures": found}, indent=1)
    print(result)
    if flags.json:
        flags.json.write_text(result + "\n")


if __name__ == "__main__":
    main()
