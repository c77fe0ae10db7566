"""Starts a server of predictions, asks it by hdps-load, and reads what its process uses."""
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time

MODEL = "m"
START_SECONDS_MAX = 300


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A process that listens on loopback, from the moment at which it is ready until the end of a `with`."""

    def __init__(self, command, port, ready, folder=None):
        """`command` starts it in a folder; `ready` is the path that answers with 200 once the model answers."""
        self.host = f"127.0.0.1:{port}"
        self.log = tempfile.TemporaryFile(mode="w+")
        began = time.monotonic()
        self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=subprocess.STDOUT, start_new_session=True, cwd=folder)
        while not self.answers(ready):
            if self.process.poll() is not None or time.monotonic() > began + START_SECONDS_MAX:
                self.stop()
                raise SystemExit(f"serving.py: error: {command[0]} does not answer:\n{self.said()[-3000:]}")
            time.sleep(0.05)
        self.start_seconds = time.monotonic() - began

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def answers(self, path):
        connection = http.client.HTTPConnection(self.host, timeout=5)
        try:
            connection.request("GET", path)
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def said(self):
        """All that it printed so far."""
        if self.log.closed:
            return self.last_said
        # The process writes on from the position that both share, so it is left alone.
        file = self.log.fileno()
        return os.pread(file, os.fstat(file).st_size, 0).decode()

    def stop(self):
        """Ends it and what it started; returns its exit status."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
        status = self.process.wait()
        if not self.log.closed:
            self.last_said = self.said()
            self.log.close()
        return status

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self):
        """Bytes in memory now, and the most since reset_peak()."""
        words = dict(line.split(":") for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines())
        return tuple(int(words[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))

    def reset_peak(self):
        pathlib.Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")


def hdps_server(programs, checkpoint, *flags):
    """hdps serve over a folder of checkpoints, with the newest of them."""
    port = free_port()
    return Server([pathlib.Path(programs) / "hdps", "serve", f"--checkpoint={checkpoint}", f"--name={MODEL}",
                   f"--http=127.0.0.1:{port}", "--which=newest", *flags], port, "/v2/health/ready")


class Load:
    """Requests in a file, which hdps-load sends to a server."""

    def __init__(self, programs, folder, name, messages, rows):
        self.program = pathlib.Path(programs) / "hdps-load"
        self.file = pathlib.Path(folder) / f"{name}.requests"
        self.file.write_bytes(b"".join(messages))
        self.name, self.rows, self.messages = name, rows, messages

    def start(self, server, rate=0, seconds=3, connections=8, answers=None, gaps="even"):
        command = [self.program, f"--server={server.host}", f"--requests={self.file}", f"--rows={self.rows}",
                   f"--rate={rate}", f"--seconds={seconds}", f"--connections={connections}", f"--gaps={gaps}"]
        return subprocess.Popen([*map(str, command), *([f"--answers={answers}"] if answers else [])],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)

    @staticmethod
    def figures(started):
        text = started.communicate()[0]
        if started.returncode != 0:
            raise SystemExit(f"serving.py: error: hdps-load ended with status {started.returncode}")
        return json.loads(text)

    def run(self, server, **how):
        """The figures of a load, with the processor time that a row costs the server and the load."""
        before = server.cpu_seconds()
        figures = self.figures(self.start(server, **how))
        rows = max(1, figures["answered"]) * self.rows
        figures["server_us_a_row"] = 1e6 * (server.cpu_seconds() - before) / rows
        figures["load_us_a_row"] = 1e6 * figures.pop("own_cpu_seconds") / rows
        return figures
