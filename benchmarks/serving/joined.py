"""Measures what hdps serve --batch_wait_us brings to requests of one row."""
import contextlib
import pathlib
import re
import secrets
import urllib.request

import inference_requests as requests
from measured_server import MODEL, Load, hdps_server

WAITS_US = (0, 50, 200)
CONNECTIONS = (1, 8, 64)  # 64 requests a thread may wait; more are refused.


def counted(server, bearer):
    """Rows and batches that the server has scored so far, by its figures."""
    asked = urllib.request.Request(f"http://{server.host}/metrics", headers={"Authorization": bearer})
    with urllib.request.urlopen(asked, timeout=30) as answer:
        text = answer.read().decode()
    return [float(re.search(rf"^hdps_serving_{name}_total\S* (\S+)$", text, re.M)[1]) for name in ("rows", "batches")]


def measure(programs, folder, made, rows, measured, repeats, seconds):
    """Adds samples of rows/s, time of a row and rows a batch for each wait and number of connections, in turns."""
    token, file = secrets.token_hex(16), pathlib.Path(folder) / "token"
    file.touch(0o600)
    file.write_text(token)
    bearer = f"Bearer {token}"
    with contextlib.ExitStack() as stack:
        servers = {wait: stack.enter_context(hdps_server(programs, made.out, f"--batch_wait_us={wait}",
                                                         f"--http_token_file={file}")) for wait in WAITS_US}
        load = Load(programs, folder, "joined", [requests.as_json(servers[0].host, MODEL, [row], headers=[f"Authorization: {bearer}"])
                                                for row in rows[:4096]], 1)
        for _ in range(repeats):
            for connections in CONNECTIONS:
                for wait, server in servers.items():
                    before = counted(server, bearer)
                    found = load.run(server, seconds=seconds, connections=connections)
                    if found["failures"] or found["changed_answers"]:
                        raise SystemExit(f"serving.py: error: --batch_wait_us={wait}: {found}")
                    scored, batches = (after - old for after, old in zip(counted(server, bearer), before))
                    name = f"{connections} connections, wait {wait} us"
                    measured.add(f"{name}: rows", found["rows_a_second"])
                    measured.add(f"{name}: server us/row", found["server_us_a_row"])
                    measured.add(f"{name}: rows a batch", scored / batches)
                    measured.add(f"{name}: p50", found["p50_ms"])


def lines_of(measured):
    """(what, figure, unit, aim) of each line."""
    return [(f"{connections} connections, wait {wait} us: {what}",
             measured.median(f"{connections} connections, wait {wait} us: {what}"), unit, "")
            for connections in CONNECTIONS for wait in WAITS_US
            for what, unit in (("rows", "rows/s"), ("server us/row", "us"), ("rows a batch", "rows"), ("p50", "ms"))]
