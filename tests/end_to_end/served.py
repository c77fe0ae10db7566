"""A real `hdps serve`, and rows as requests of each form."""
import http.client
import importlib.util
import json
import re
import struct

import harness

# hdps.Client asks the same over HTTP and over ZeroMQ.
hdps = importlib.import_module("hdps") if importlib.util.find_spec("hdps") else None
if hdps is None:
    harness.left_out("requests of the Python package, and over ZeroMQ: the package was not built")


def number(cell):
    """A numeric cell as JSON has it; None is missing."""
    return None if cell == "" else float(cell)


class Columns:
    """Rows as columns of cells, as they stand in files: {name: [texts]}. `numeric` are names of numbers, which are sent
    as 64-bit floats where `doubles` asks for it: behind a transform the last bit tells 38.6 of one from the other."""

    def __init__(self, cells, numeric=(), doubles=False):
        self.cells, self.numeric = cells, set(numeric)
        self.datatype, self.packing = ("FP64", "<d") if doubles else ("FP32", "<f")
        self.rows = len(next(iter(cells.values())))

    @classmethod
    def of_job(cls, job, lines, missing="", doubles=False):
        """The columns that a csv job takes from lines of its files; labels, weights and groups are not asked for."""
        cells, numeric = {}, []
        columns = job["data"]["columns"]
        rows = [[cell.strip() for cell in line.split(",")] for line in lines]
        for i, column in enumerate(columns):
            kind = column.get("type", "categorical")
            if kind in ("label", "weight", "group", "skip"):
                continue
            cells[column["name"]] = ["" if row[i] == missing else row[i] for row in rows]
            if kind == "numeric":
                numeric.append(column["name"])
        return cls(cells, numeric, doubles)

    def type_of(self, name):
        return self.datatype if name in self.numeric else "BYTES"

    def values(self, name):
        return [number(cell) for cell in self.cells[name]] if name in self.numeric else self.cells[name]

    def of_python(self):
        """A dict for hdps.Client. Python's numbers have 64 bits."""
        return {name: [None if cell == "" else cell for cell in self.values(name)] for name in self.cells}

    def infer_json(self, outputs=None):
        request = {"inputs": [{"name": name, "shape": [self.rows], "data": self.values(name),
                               "datatype": self.type_of(name)} for name in self.cells]}
        if outputs:
            request["outputs"] = [{"name": name} for name in outputs]
        return json.dumps(request).encode(), {}

    def infer_binary(self):
        """Inputs and outputs as binary tensors."""
        inputs, tail = [], b""
        for name, cells in self.cells.items():
            if name in self.numeric:
                tensor = b"".join(struct.pack(self.packing, float("nan") if cell == "" else float(cell)) for cell in cells)
            else:
                tensor = b"".join(struct.pack("<I", len(cell.encode())) + cell.encode() for cell in cells)
            inputs.append({"name": name, "shape": [self.rows], "datatype": self.type_of(name),
                           "parameters": {"binary_data_size": len(tensor)}})
            tail += tensor
        head = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()
        return head + tail, {"Inference-Header-Content-Length": str(len(head)),
                             "Content-Type": "application/octet-stream"}

    def predict(self):
        columns = {name: self.values(name) for name in self.cells}
        instances = [{name: columns[name][row] for name in columns} for row in range(self.rows)]
        return json.dumps({"instances": instances}).encode(), {}


def floats(values):
    """Numbers as the bits of 32-bit floats, of lists in lists too."""
    if isinstance(values, list):
        return [bits for value in values for bits in floats(value)]
    return [struct.pack("<f", values).hex()]


def scores_of_json(answer):
    """The outputs of a V2 answer in JSON, a row after the other: tasks are outputs of their own."""
    outputs = [(output["data"], output["shape"][0]) for output in json.loads(answer)["outputs"]]
    return rows_of(outputs)


def scores_of_binary(answer, headers):
    head = int(headers["Inference-Header-Content-Length"])
    outputs, at = [], head
    for output in json.loads(answer[:head])["outputs"]:
        size = output["parameters"]["binary_data_size"]
        outputs.append((list(struct.unpack(f"<{size // 4}f", answer[at:at + size])), output["shape"][0]))
        at += size
    assert at == len(answer), "bytes behind the tensors"
    return rows_of(outputs)


def scores_of_predict(answer):
    """Of several outputs each prediction is an object."""
    predictions = json.loads(answer)["predictions"]
    return floats([list(one.values()) if isinstance(one, dict) else one for one in predictions])


def rows_of(outputs):
    flat = []
    for row in range(outputs[0][1]):
        for data, rows in outputs:
            width = len(data) // rows
            flat += floats(data[row * width:(row + 1) * width])
    return flat


class ServeCase(harness.DaemonsCase):
    messages_at = None

    def serve(self, *flags, http="127.0.0.1:0", env=None):
        """Starts hdps serve and waits until it has said where it answers; returns process, port and drawn token. Where
        the package is there it answers over ZeroMQ too, at self.messages_at."""
        if hdps and not any(flag.startswith("--listen=") for flag in flags):
            flags = (*flags, "--listen=tcp://127.0.0.1:0")
        process = self.start("hdps", "serve", f"--http={http}", "--log=error", *flags, env=env)
        said, port, token = [], None, None
        for line in process.stderr:
            said.append(line)
            where = re.search(r"watch at https?://[\w.]+:(\d+)/(?:\?token=([0-9a-f]+))?", line)
            if where:
                port, token = int(where[1]), where[2]
            messages = re.search(r"answers at (\S+)$", line)
            if messages:
                self.messages_at = messages[1]
            if "answers:" in line:
                return process, port, token
        process.wait()
        self.fail(f"hdps serve ended with {process.returncode}: {''.join(said)}")

    def connect(self, port):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.addCleanup(connection.close)
        return connection

    @staticmethod
    def ask(connection, path, body=None, headers=None, token=None):
        """Status, headers and body; a POST if there is a body."""
        headers = {**(headers or {}), **({"Authorization": f"Bearer {token}"} if token else {})}
        connection.request("GET" if body is None else "POST", path, body, headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()

    def predicted(self, checkpoint, file, *flags):
        """The numbers that hdps predict prints, as bits."""
        said = harness.run([harness.program("hdps"), "predict", f"--checkpoint={checkpoint}", f"--data={file}", *flags])
        return floats([float(word) for word in said.stdout.split()])

    def answered(self, connection, model, columns):
        """The scores by each form of a request: infer as JSON and binary, :predict, and the package's two ways."""
        found = {}
        for form, path, request in (("json", f"/v2/models/{model}/infer", columns.infer_json()),
                                    ("binary", f"/v2/models/{model}/infer", columns.infer_binary()),
                                    ("predict", f"/v1/models/{model}:predict", columns.predict())):
            status, headers, body = self.ask(connection, path, *request)
            self.assertEqual(status, 200, (form, body[:500]))
            if form == "json":
                found[form] = scores_of_json(body)
            else:
                found[form] = scores_of_binary(body, headers) if form == "binary" else scores_of_predict(body)
        for way, url in (("Python", f"http://127.0.0.1:{connection.port}"), ("ZeroMQ", self.messages_at)):
            if hdps:
                with hdps.Client(url, model=model) as client:
                    found[way] = floats(client.predict(columns.of_python()).tolist())
        return found

    def stop(self, process):
        """SIGTERM; returns what was said on stderr since."""
        process.terminate()
        _, said = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0, said)
        return said


def curl(*arguments):
    """Runs curl; returns status and body."""
    done = harness.run(["curl", "--silent", "--show-error", "--write-out", "\n%{http_code}", *arguments])
    body, _, status = done.stdout.rpartition("\n")
    return int(status), body


