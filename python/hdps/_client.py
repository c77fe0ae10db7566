"""Asks a serving process for predictions: over HTTP by the standard library, or over ZeroMQ."""
import array
import http.client
import json
import ssl
import threading
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union
from urllib.parse import quote, urlsplit

from hdps import _hdps
from hdps._train import Path

# An answer of one of these is a mistake that the caller can mend.
_MISTAKES = (400, 401, 403, 404, 405, 409, 413, 414, 415, 431)
_BINARY_LENGTH = "Inference-Header-Content-Length"

Notes = List[Tuple[str, str, int]]  # Name, datatype and width of inputs or outputs.
Outputs = List[Tuple[str, Any]]


class _Asked(NamedTuple):
    """Rows of a table that are asked for: by keys, or by values of a feature."""
    table: str
    keys: Optional[List[int]]
    feature: Optional[str]
    values: Optional[List[str]]


def _tensors(notes: Notes) -> List[Dict[str, Any]]:
    return [{"name": name, "datatype": datatype, "shape": [-1] if width == 1 else [-1, width]}
            for name, datatype, width in notes]


class _Messages:
    """ZeroMQ, by the messages of the roles."""

    def __init__(self, url: str, model: str, keys: Optional[Path], insecure: bool, timeout: float) -> None:
        self._client = _hdps.MessageClient(url, keys, insecure, timeout)
        self._model = model

    def metadata(self) -> Dict[str, Any]:
        name, version, inputs, outputs, ready = self._client.note(self._model)
        return {"name": name, "versions": [str(version)] if ready else [], "platform": "hdps",
                "inputs": _tensors(inputs), "outputs": _tensors(outputs)}

    def ready(self) -> bool:
        return bool(self._client.note(self._model)[4])

    def infer(self, rows: _hdps.SentRows, outputs: Sequence[str], version: int, top_k: int,
              request_id: str) -> Tuple[int, Outputs]:
        return self._client.predict(self._model, rows, list(outputs), version, top_k, request_id)

    def lookup(self, asked: _Asked) -> Tuple[int, _hdps.Array]:
        by_key, by_value = asked.keys is not None, bool(asked.feature) and asked.values is not None
        if by_key == by_value or (by_key and (asked.feature or asked.values is not None)):
            raise _hdps.JobError("lookup: expected either keys, or feature with values")
        return self._client.lookup(self._model, asked.table, asked.keys or [], asked.feature or "",
                                   asked.values or [])

    def use(self, version: Any) -> None:
        raise _hdps.JobError("use: a version is chosen over HTTP with the token; make the Client of an http:// address")

    def close(self) -> None:
        pass


class _Http:
    """HTTP/1.1 with a connection for each thread that asks, which is kept."""

    def __init__(self, url: str, token: Optional[str], model: str, certificate: Optional[Path],
                 timeout: float) -> None:
        parts = urlsplit(url)
        if not parts.hostname or parts.path not in ("", "/") or parts.query:
            raise _hdps.JobError(f"url \"{url}\": expected http://HOST:PORT, https://HOST:PORT or tcp://HOST:PORT")
        self._url, self._host, self._port = url, parts.hostname, parts.port
        self._tls = ssl.create_default_context(cafile=certificate) if parts.scheme == "https" else None
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._timeout = timeout
        self._named = model
        self._local = threading.local()

    def _connection(self) -> http.client.HTTPConnection:
        kept: Optional[http.client.HTTPConnection] = getattr(self._local, "connection", None)
        if kept is None:
            if self._tls is not None:
                kept = http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout,
                                                   context=self._tls)
            else:
                kept = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
            self._local.connection = kept
        return kept

    def _exchange(self, method: str, path: str, body: Optional[bytes],
                  headers: Dict[str, str]) -> Tuple[http.client.HTTPResponse, bytes]:
        connection = self._connection()
        kept = connection.sock is not None
        try:
            connection.request(method, path, body, {**self._headers, **headers})
            response = connection.getresponse()
            return response, response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            # The server may have closed a connection that nobody used for some seconds.
            if kept and isinstance(error, (ConnectionError, http.client.BadStatusLine)):
                return self._exchange(method, path, body, headers)
            raise _hdps.RunError(f"nobody answers at {self._url}: {error}") from error

    def _ask(self, method: str, path: str, body: Optional[bytes] = None,
             headers: Optional[Dict[str, str]] = None) -> Tuple[http.client.HTTPResponse, bytes]:
        response, answer = self._exchange(method, path, body, headers or {})
        if response.status < 300:
            return response, answer
        try:
            told = json.loads(answer)["error"]
        except (ValueError, KeyError, TypeError):
            told = answer.decode(errors="replace").strip() or response.reason
        if response.status in (401, 403):
            told += "; give Client its token=..."
        raise (_hdps.JobError if response.status in _MISTAKES else _hdps.RunError)(told)

    def _json(self, method: str, path: str, asked: Any = None) -> Any:
        body = None if asked is None else json.dumps(asked).encode()
        headers = {} if asked is None else {"Content-Type": "application/json"}
        return json.loads(self._ask(method, path, body, headers)[1])

    @property
    def _model(self) -> str:
        if not self._named:
            names = sorted({one["name"] for one in self._json("POST", "/v2/repository/index", {})})
            if len(names) != 1:
                raise _hdps.JobError(f"{self._url} has the models {', '.join(names)}: give Client one as model=...")
            self._named = names[0]
        return quote(self._named, safe="")

    def metadata(self) -> Dict[str, Any]:
        told: Dict[str, Any] = self._json("GET", f"/v2/models/{self._model}")
        return told

    def ready(self) -> bool:
        response, _ = self._exchange("GET", f"/v2/models/{self._model}/ready", None, {})
        return response.status == 200

    def infer(self, rows: _hdps.SentRows, outputs: Sequence[str], version: int, top_k: int,
              request_id: str) -> Tuple[int, Outputs]:
        tensors = rows.tensors()
        parameters: Dict[str, Any] = {"binary_data_output": True}
        if top_k:
            parameters["k"] = top_k
        asked: Dict[str, Any] = {"inputs": [
            {"name": name, "datatype": datatype, "shape": shape, "parameters": {"binary_data_size": len(data)}}
            for name, datatype, shape, data in tensors], "parameters": parameters}
        if request_id:
            asked["id"] = request_id
        if outputs:
            asked["outputs"] = [{"name": name, "parameters": {"binary_data": True}} for name in outputs]
        head = json.dumps(asked).encode()
        at = f"/versions/{version}" if version >= 0 else ""
        response, answer = self._ask(
            "POST", f"/v2/models/{self._model}{at}/infer",
            b"".join([head] + [data for _, _, _, data in tensors]),
            {_BINARY_LENGTH: str(len(head)), "Content-Type": "application/octet-stream"})
        return _outputs_of(answer, response.getheader(_BINARY_LENGTH))

    def lookup(self, asked: _Asked) -> Tuple[int, _hdps.Array]:
        body = {name: value for name, value in asked._asdict().items() if value is not None}
        told = self._json("POST", f"/v1/models/{self._model}:lookup", body)
        rows = array.array("f", (weight for row in told["rows"] for weight in row))
        return int(told["model_version"]), _hdps.floats_of(rows.tobytes(), [len(told["rows"]), told["dim"]])

    def use(self, version: Any) -> None:
        self._json("POST", f"/v1/models/{self._model}:use", {"version": version})

    def close(self) -> None:
        kept = getattr(self._local, "connection", None)
        if kept is not None:
            kept.close()


def _outputs_of(answer: bytes, json_length: Optional[str]) -> Tuple[int, Outputs]:
    """Returns the version and the outputs of an infer response."""
    length = len(answer) if json_length is None else int(json_length)
    told = json.loads(answer[:length])
    outputs: Outputs = []
    at = length
    for tensor in told["outputs"]:
        size = tensor.get("parameters", {}).get("binary_data_size")
        data = None if size is None else answer[at:at + size]
        at += size or 0
        outputs.append((tensor["name"], _values_of(tensor, data)))
    return int(told["model_version"]), outputs


def _values_of(tensor: Dict[str, Any], data: Optional[bytes]) -> Any:
    shape = tensor["shape"]
    if len(shape) == 2 and shape[1] == 1:
        shape = shape[:1]
    if tensor["datatype"] == "FP32" and data is not None:
        return _hdps.floats_of(data, shape)
    texts, at = [], 0
    while data is not None and at < len(data):
        end = at + 4 + int.from_bytes(data[at:at + 4], "little")
        texts.append(data[at + 4:end].decode(errors="backslashreplace"))
        at = end
    if data is None:
        texts = tensor["data"]
    width = shape[1] if len(shape) == 2 else 1
    return [texts[i:i + width] for i in range(0, len(texts), width)]


class Client:
    """Asks `hdps serve` for predictions, over HTTP or over ZeroMQ.

    url: "http://HOST:PORT" or "https://HOST:PORT", --http of hdps serve; or "tcp://HOST:PORT", its
        --listen. Both give the same numbers, and those of hdps.Model.predict.
    token: the one of --http_token_file, where the server wants it.
    model: the name of one of its models; None: the only one.
    keys: for tcp://, the folder of hdps keygen with the key of a reader or an admin.
    insecure: for tcp://, allows an address beyond this machine without keys.
    certificate: for https://, a file with the certificate to trust; None: those of the system.
    timeout: the seconds after which a server that is silent is given up.

    Several threads may use it. Raises JobError for a mistake, and RunError where nobody answers or
    the server has no room; then ask again later.

    >>> hdps.Client("http://127.0.0.1:9").ready()
    False
    """

    def __init__(self, url: str, token: Optional[str] = None, model: Optional[str] = None,
                 keys: Optional[Path] = None, *, insecure: bool = False,
                 certificate: Optional[Path] = None, timeout: float = 10.0) -> None:
        scheme = url.partition("://")[0]
        if scheme in ("tcp", "ipc"):
            if token is not None or certificate is not None:
                raise _hdps.JobError(f"url \"{url}\": token and certificate are for http:// and https://; "
                                     "keys=FOLDER is for tcp://")
            self._way: Union[_Http, _Messages] = _Messages(url, model or "", keys, insecure, timeout)
        elif scheme in ("http", "https"):
            if keys is not None or insecure:
                raise _hdps.JobError(f"url \"{url}\": keys and insecure are for tcp://; token=... is for http://")
            self._way = _Http(url, token, model or "", certificate, timeout)
        else:
            raise _hdps.JobError(f"url \"{url}\": expected http://HOST:PORT, https://HOST:PORT or tcp://HOST:PORT")
        self._url = url
        self._metadata: Optional[Dict[str, Any]] = None
        self._version: Optional[int] = None

    @property
    def version(self) -> Optional[int]:
        """The version of the model that gave the newest predictions or rows; None before them."""
        return self._version

    def ready(self) -> bool:
        """Returns whether the model can answer; False also where nobody can be reached."""
        try:
            return self._way.ready()
        except _hdps.RunError:
            return False

    def metadata(self) -> Dict[str, Any]:
        """Returns name, versions, inputs and outputs of the model, as GET /v2/models/NAME tells them."""
        self._metadata = self._way.metadata()
        return self._metadata

    def predict(self, data: Any, outputs: Optional[Sequence[str]] = None,
                version: Optional[int] = None, top_k: int = 0, request_id: str = "") -> Any:
        """Returns the predictions of rows: float32, of the shape of hdps.Model.predict().

        data: a dict of columns, a data frame or an Arrow table, as for hdps.Model.predict(), with
            the model's inputs; what is no input is passed over. A column of one cell, or a single
            text or number, counts for all rows. At most 8,192 rows and 16 MiB. A model whose data
            have no named columns takes the column "row", of lines.
        outputs: names from metadata(); then the result is a dict from names to arrays, or to lists
            of texts. None: the predictions alone.
        version: the step that is to answer; JobError if another does. None: whichever does.
        top_k: the number of items of the output "top_k".
        request_id: what --log_requests of the server writes beside the rows as hdps_id.
        """
        if self._metadata is None:
            self.metadata()
        assert self._metadata is not None
        rows = _hdps.rows_to_send(data, [one["name"] for one in self._metadata["inputs"]])
        self._version, answer = self._way.infer(
            rows, list(outputs or ()), -1 if version is None else version, top_k, request_id)
        if outputs is not None:
            return dict(answer)
        arrays = [values for _, values in answer]
        return arrays[0] if len(arrays) == 1 else _hdps.columns_beside(arrays)

    def lookup(self, table: str, *, keys: Any = None, feature: Optional[str] = None,
               values: Optional[Sequence[Any]] = None) -> _hdps.Array:
        """Returns the weights of rows of a table: float32 [n, dim].

        table: the name of a sparse table.
        keys: whole numbers, as hdps.Model.keys() gives them; or feature and values, of which the
            server makes them. A key without a row reads as the model reads it.
        """
        whole = keys.tolist() if hasattr(keys, "tolist") else keys
        self._version, rows = self._way.lookup(_Asked(
            table,
            None if whole is None else [int(key) % 2 ** 64 for key in whole],
            feature,
            None if values is None else [value if isinstance(value, str) else str(value) for value in values]))
        return rows

    def use(self, version: Union[int, str]) -> None:
        """Pins a version by its step, or follows the newest again with "newest"; over HTTP, with the token."""
        self._way.use(version)

    def close(self) -> None:
        """Closes the connection of this thread; a later call opens one again."""
        self._way.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<hdps.Client {self._url!r}>"
