"""A TCP proxy that records what passes, and may change it: what someone in the middle can do."""
import socket
import threading


class Proxy:
    """Listens on loopback and passes on to `port`; `change(direction, at, bytes)` may alter bytes.

    Invariant: `sent` holds what the dialing side has sent, by connection, as it sent it.
    """

    def __init__(self, port, change=lambda direction, at, data: data):
        self.port, self.change, self.sent = port, change, []
        self.door = socket.create_server(("127.0.0.1", 0))
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
