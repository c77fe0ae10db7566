"""A socket of ZeroMQ that holds a key and says what it likes: libzmq itself, without a binding for it."""
import ctypes
import ctypes.util
import os
import struct

DEALER, ROUTING_ID, LINGER, PUBLIC_KEY, SECRET_KEY, SERVER_KEY = 5, 5, 17, 48, 49, 50
DONT_WAIT, SEND_MORE, MAX_SOCKETS = 1, 2, 2


def library():
    zmq = ctypes.CDLL(ctypes.util.find_library("zmq") or "libzmq.so.5")
    for name in ("zmq_ctx_new", "zmq_socket"):
        getattr(zmq, name).restype = ctypes.c_void_p
    return zmq


class Dealers:
    """Sockets of one context, each with the key `holder` of a folder of keys.

    Nobody can tell them from a client of the protocol before they say something.
    """

    def __init__(self, keys, holder, sockets_max=1024):
        self.zmq, self.keys, self.holder = library(), keys, holder
        self.context = ctypes.c_void_p(self.zmq.zmq_ctx_new())
        self.zmq.zmq_ctx_set(self.context, MAX_SOCKETS, sockets_max)
        self.public = {words[1]: words[2] for line in (keys / "allowed").read_text().splitlines()
                       if not line.startswith("#") for words in [line.split()]}

    def dial(self, port, listener, sender):
        """Of the holder of the key `listener`, as the peer `sender`."""
        socket = ctypes.c_void_p(self.zmq.zmq_socket(self.context, DEALER))
        # As common/net/callers.h has it: the peer, a secret, and the number of the dial.
        name = b"h" + struct.pack("<Q8sQ", sender, os.urandom(8), 1)
        secret = (self.keys / f"{self.holder}.key").read_text().strip()
        for option, value in ((ROUTING_ID, name), (LINGER, struct.pack("i", 0)),
                              (PUBLIC_KEY, self.public[self.holder].encode()), (SECRET_KEY, secret.encode()),
                              (SERVER_KEY, self.public[listener].encode())):
            if self.zmq.zmq_setsockopt(socket, option, value, ctypes.c_size_t(len(value))) != 0:
                raise OSError(f"option {option} of a socket was not taken")
        if self.zmq.zmq_connect(socket, f"tcp://127.0.0.1:{port}".encode()) != 0:
            raise OSError(f"port {port} was not dialed")
        return socket

    def send(self, socket, parts):
        """Whether the message could be put on its way."""
        for i, part in enumerate(parts):
            flags = DONT_WAIT | (SEND_MORE if i + 1 < len(parts) else 0)
            if self.zmq.zmq_send(socket, part, ctypes.c_size_t(len(part)), flags) < 0:
                return False
        return True

    def take(self, socket):
        """Parts of messages that have come, which are dropped."""
        buffer, parts = ctypes.create_string_buffer(4096), 0
        while self.zmq.zmq_recv(socket, buffer, ctypes.c_size_t(len(buffer)), DONT_WAIT) >= 0:
            parts += 1
        return parts

    def close(self, sockets):
        for socket in sockets:
            self.zmq.zmq_close(socket)
        self.zmq.zmq_ctx_term(self.context)
