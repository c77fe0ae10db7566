"""A TCP proxy that records bytes and may change them, like an attacker in the middle."""
import ctypes
import os
import socket
import threading

NEW_NETWORK = 0x40000000  # CLONE_NEWNET of Linux.


def door_in(process, port):
    """A socket that listens on `port` of loopback as `process`, in a network of its own, sees it."""
    made = []

    def make():  # In a thread that ends with it: the namespace is that of the thread.
        namespace = os.open(f"/proc/{process}/ns/net", os.O_RDONLY)
        if ctypes.CDLL(None, use_errno=True).setns(namespace, NEW_NETWORK) == 0:
            made.append(socket.create_server(("127.0.0.1", port)))
        os.close(namespace)

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    return made[0]


class Proxy:
    """Listens on loopback, or takes whoever comes to `door`, and passes on to `port`;
    `change(direction, at, bytes)` may alter bytes.

    Invariant: `sent` holds what the dialing side has sent, by connection, as it sent it.
    """

    def __init__(self, port, change=lambda direction, at, data: data, door=None):
        self.port, self.change, self.sent = port, change, []
        self.door = door or socket.create_server(("127.0.0.1", 0))
        self.own_port = self.door.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def address(self):
        return f"tcp://127.0.0.1:{self.own_port}"

    def close(self):
        self.door.close()

    def accept(self):
        while True:
            try:
                near, _ = self.door.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.port))
            except OSError:
                near.close()
                continue
            record = bytearray()
            self.sent.append(record)
            threading.Thread(target=self.carry, args=(near, far, record), daemon=True).start()

    def carry(self, near, far, record):
        with near, far:
            back = threading.Thread(target=self.pump, args=("in", far, near, record), daemon=True)
            back.start()
            self.pump("out", near, far, record)
            back.join()

    def pump(self, direction, source, sink, record):
        at = 0
        try:
            while data := source.recv(65536):
                if direction == "out":
                    record += data
                sink.sendall(self.change(direction, at, data))
                at += len(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
