"""Makes requests for predictions from rows of a log in Criteo's layout, in each form of the Open Inference Protocol,
as whole HTTP messages that hdps-load sends, and reads scores from answers."""
import json
import struct

NUMBERS = [f"I{i}" for i in range(1, 14)]
TEXTS = [f"C{i}" for i in range(1, 27)]
# Columns of the user where one user is asked for with many candidates: all numbers, and 16 of the 26 categories.
USER = [*NUMBERS, *TEXTS[:16]]


def rows_of(path, most):
    """The cells of the first rows, by column; the label is left out."""
    with open(path, encoding="ascii") as lines:
        return [dict(zip([*NUMBERS, *TEXTS], line.rstrip("\n").split("\t")[1:])) for line, _ in zip(lines, range(most))]


def batches(rows, size):
    """Whole batches of so many rows."""
    return [rows[at:at + size] for at in range(0, len(rows) - size + 1, size)]


def with_one_user(batch):
    """The same candidates, all of them with the user of the first row."""
    return [{**row, **{name: batch[0][name] for name in USER}} for row in batch]


def tensor(name, batch, once):
    """An input as JSON has it: of shape [1] for a column that is sent once for all rows."""
    rows = batch[:1] if name in once else batch
    if name in TEXTS:
        return {"name": name, "shape": [len(rows)], "datatype": "BYTES", "data": [row[name] for row in rows]}
    return {"name": name, "shape": [len(rows)], "datatype": "FP32",
            "data": [float(row[name]) if row[name] else None for row in rows]}


def http(host, model, body, *headers):
    """A whole request."""
    head = [f"POST /v2/models/{model}/infer HTTP/1.1", f"Host: {host}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*head, "", ""]).encode() + body


def as_json(host, model, batch, once=(), headers=()):
    """A request in JSON, with further headers."""
    inputs = [tensor(name, batch, once) for name in [*NUMBERS, *TEXTS]]
    return http(host, model, json.dumps({"inputs": inputs}, separators=(",", ":")).encode(),
                "Content-Type: application/json", *headers)


def as_binary(host, model, batch):
    """A request with binary tensors, which asks for binary answers."""
    inputs, tensors = [], b""
    for name in [*NUMBERS, *TEXTS]:
        one = tensor(name, batch, ())
        cells = one.pop("data")
        if one["datatype"] == "BYTES":
            data = b"".join(struct.pack("<I", len(cell)) + cell.encode() for cell in cells)
        else:
            data = struct.pack(f"<{len(cells)}f", *(float("nan") if cell is None else cell for cell in cells))
        inputs.append({**one, "parameters": {"binary_data_size": len(data)}})
        tensors += data
    head = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}, separators=(",", ":")).encode()
    return http(host, model, head + tensors, "Content-Type: application/octet-stream",
                f"Inference-Header-Content-Length: {len(head)}")


def split(messages):
    """(headers by lower-case name, body) of each whole HTTP message in these bytes."""
    at, found = 0, []
    while at < len(messages):
        end = messages.index(b"\r\n\r\n", at)
        lines = messages[at:end].decode().split("\r\n")[1:]
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        at = end + 4 + int(headers["content-length"])
        found.append((headers, messages[end + 4:at]))
    return found


def scores(headers, body):
    """The bits of an answer's predictions, one number of 32 bits a row."""
    length = headers.get("inference-header-content-length")
    answer = json.loads(body[:int(length)] if length else body)
    output = answer["outputs"][0]
    if not length:
        return struct.pack(f"<{len(output['data'])}f", *output["data"])
    at = int(length)
    return body[at:at + output["parameters"]["binary_data_size"]]
