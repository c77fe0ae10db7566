"""Emulates machines by namespaces on this one, with a switch and links of a given rate."""
import atexit
import json
import os
import shutil
import signal
import subprocess
import tempfile

PREFIX = "hdps_links_"
# Burst of tbf: the largest segment of the kernel, or a millisecond.
BURST_BYTES_MIN = 128 << 10
# Queue of a switch port before it drops, in milliseconds of bytes.
QUEUE_MS = 20
PORT = "uplink"  # Each machine's only way to the others.


def _run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True).stdout


def _names():
    return [line.split()[0] for line in _run("ip", "netns", "list").splitlines()
            if line.startswith(PREFIX)]


def _alive(pid):
    return os.path.exists("/proc/%d" % pid)


def _end_of(name):
    """Ends the processes in the namespace, and removes it with its links."""
    for pid in _run("ip", "netns", "pids", name).split():
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            pass
    _run("ip", "netns", "delete", name)


def remove_those_of_the_dead():
    """Removes the namespaces of a process that was killed before it could clean up."""
    for name in _names():
        if not _alive(int(name[len(PREFIX):].split("_")[0])):
            _end_of(name)


def why_not():
    """Returns why namespaces cannot be made here; None: they can."""
    for program in ("ip", "tc", "unshare", "taskset"):
        if shutil.which(program) is None:
            return "there is no program '%s' (Debian: iproute2, util-linux)" % program
    if os.geteuid() != 0:
        return "network namespaces are made by root alone"
    try:
        with Machines(1, 1e9 / 8) as machines:
            machines.run(0, ["ls", "/proc/self/ns"])
    except subprocess.CalledProcessError as error:
        return "%s: %s" % (" ".join(error.cmd), (error.stderr or "").strip())
    return None


class Machines:
    """`count` machines, each joined to a switch by a link of `bytes_per_second` in each direction.

    Each has a network namespace of its own, and what runs in it sees only its own processes, so
    that nothing goes from one to another but over the links: processes of one machine would share
    memory. The switch is in a namespace too; the network of this machine is left alone. `cores` are
    dealt out evenly where there are enough; with fewer, all share all.
    """

    def __init__(self, count, bytes_per_second):
        self.count, self.bytes_per_second = count, bytes_per_second
        self.name = "%s%d" % (PREFIX, os.getpid())
        self.switch = self.name + "_switch"
        cores = sorted(os.sched_getaffinity(0))
        self.cores_each = max(len(cores) // count, 1)
        self.cores = [[cores[(m * self.cores_each + c) % len(cores)] for c in range(self.cores_each)]
                      for m in range(count)]

    def namespace(self, machine):
        return "%s_%d" % (self.name, machine)

    def address(self, machine):
        return "10.77.0.%d" % (machine + 1)

    def __enter__(self):
        remove_those_of_the_dead()
        atexit.register(self.remove)  # Also when a signal ends this program by an exception.
        try:
            _run("ip", "netns", "add", self.switch)
            _run("ip", "-n", self.switch, "link", "add", "switch", "type", "bridge")
            _run("ip", "-n", self.switch, "link", "set", "switch", "up")
            for machine in range(self.count):
                self._join(machine)
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_):
        self.remove()

    def _join(self, machine):
        name, port = self.namespace(machine), "port_%d" % machine
        _run("ip", "netns", "add", name)
        _run("ip", "-n", self.switch, "link", "add", port, "type", "veth", "peer", "name", PORT,
             "netns", name)
        _run("ip", "-n", self.switch, "link", "set", port, "master", "switch", "up")
        _run("ip", "-n", name, "address", "add", self.address(machine) + "/24", "dev", PORT)
        for device in ("lo", PORT):
            _run("ip", "-n", name, "link", "set", "dev", device, "up")
        rate = "%dbit" % round(8 * self.bytes_per_second)
        burst = str(max(BURST_BYTES_MIN, round(1e-3 * self.bytes_per_second)))
        limit = str(max(4 * BURST_BYTES_MIN, round(1e-3 * QUEUE_MS * self.bytes_per_second)))
        for where, device in ((name, PORT), (self.switch, port)):
            _run("tc", "-n", where, "qdisc", "add", "dev", device, "root", "tbf", "rate", rate,
                 "burst", burst, "limit", limit)

    def remove(self):
        atexit.unregister(self.remove)
        for name in _names():
            if name.startswith(self.name + "_"):
                _end_of(name)

    def command(self, machine, command):
        """Returns the command line that runs `command` on a machine; its children end with it."""
        cores = ",".join(map(str, self.cores[machine]))
        return ["ip", "netns", "exec", self.namespace(machine), "taskset", "-c", cores, "unshare",
                "--pid", "--fork", "--kill-child", "--mount-proc", *command]

    def run(self, machine, command):
        return _run(*self.command(machine, command))

    def processes(self, machine):
        return _run("ip", "netns", "pids", self.namespace(machine)).split()

    def counters(self, machine):
        """Returns the bytes that the machine's devices moved so far: {"uplink": {"in", "out"}, "lo": ...}."""
        links = json.loads(_run("ip", "-n", self.namespace(machine), "-s", "-j", "link"))
        return {link["ifname"]: {"in": link["stats64"]["rx"]["bytes"],
                                 "out": link["stats64"]["tx"]["bytes"]} for link in links}


def end_on_signals():
    """Turns Ctrl-C, SIGTERM and SIGHUP into an exception, so that this program cleans up."""
    def stop(number, _):
        raise SystemExit(128 + number)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)


SENDER = """
import socket, sys, time
s = socket.create_connection((sys.argv[1], 9)); block = bytes(1 << 20)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end: s.sendall(block)
"""
RECEIVER = """
import socket, sys, time
l = socket.create_server((sys.argv[1], 9)); print("listening", flush=True)
s, _ = l.accept(); buffer = bytearray(1 << 20); total = 0; began = None
while got := s.recv_into(buffer):
    total += got; began = began or time.monotonic()
print(total / (time.monotonic() - began))
"""


def bare_socket_rate(machines, seconds=1.0):
    """Measures the yardstick: bytes per second of one TCP connection from machine 1 to machine 0."""
    address = machines.address(0)
    with tempfile.TemporaryFile("w+") as said:
        receiver = subprocess.Popen(machines.command(0, ["python3", "-c", RECEIVER, address]),
                                    stdout=subprocess.PIPE, stderr=said, text=True)
        try:
            if "listening" not in receiver.stdout.readline():
                said.seek(0)
                raise RuntimeError("no socket on a machine: " + said.read())
            machines.run(1, ["python3", "-c", SENDER, address, str(seconds)])
            return float(receiver.stdout.read())
        finally:
            receiver.kill()
            receiver.wait()
            receiver.stdout.close()
