"""A ZeroMQ socket that sends anything, with a key or without, by libzmq itself without a Python binding."""
import ctypes
import ctypes.util
import struct

import harness

DEALER, ROUTING_ID, LINGER, PUBLIC_KEY, SECRET_KEY, SERVER_KEY = 5, 5, 17, 48, 49, 50
DONT_WAIT, SEND_MORE, MAX_SOCKETS = 1, 2, 2


def library():
    zmq = ctypes.CDLL(ctypes.util.find_library("zmq") or "libzmq.so.5")
    for name in ("zmq_ctx_new", "zmq_socket"):
        getattr(zmq, name).restype = ctypes.c_void_p
    return zmq


class Name:
    """How a process names itself, as common/net/peer_name.h has it; libsodium proves it."""

    def __init__(self):
        self.sodium = ctypes.CDLL(ctypes.util.find_library("sodium") or "libsodium.so.23")
        self.key, self.secret = ctypes.create_string_buffer(32), ctypes.create_string_buffer(64)
        self.sodium.crypto_sign_keypair(self.key, self.secret)
        hashed = ctypes.create_string_buffer(32)
        self.sodium.crypto_generichash(hashed, ctypes.c_size_t(32), self.key, ctypes.c_ulonglong(32), None,
                                       ctypes.c_size_t(0))
        self.number = struct.unpack_from("<Q", hashed.raw)[0]

    def routing_id(self, number=None, dial=1):
        """As common/net/callers.h has it, to a listener whose number is not known; `number` is another's."""
        said = b"h" + struct.pack("<QQQ", self.number if number is None else number, dial, 0) + self.key.raw
        proof = ctypes.create_string_buffer(64)
        self.sodium.crypto_sign_detached(proof, None, said, ctypes.c_ulonglong(len(said)), self.secret)
        return said + proof.raw


class Dealers:
    """Sockets of one context, each with the key `holder` of a folder of keys, where there is one.

    Nobody can tell them from a client of the protocol before they say something.
    """

    def __init__(self, keys=None, holder=None, sockets_max=1024):
        self.zmq, self.keys, self.holder = library(), keys, holder
        self.context = ctypes.c_void_p(self.zmq.zmq_ctx_new())
        self.zmq.zmq_ctx_set(self.context, MAX_SOCKETS, sockets_max)
        lines = [] if keys is None else (keys / "allowed").read_text().splitlines()
        self.public = {words[1]: words[2] for line in lines if not line.startswith("#")
                       for words in [line.split()]}

    def dial(self, port, listener, routing_id):
        """Of the holder of the key `listener`."""
        socket = ctypes.c_void_p(self.zmq.zmq_socket(self.context, DEALER))
        options = [(ROUTING_ID, routing_id), (LINGER, struct.pack("i", 0))]
        if self.keys is not None:
            secret = (self.keys / f"{self.holder}.key").read_text().strip()
            options += [(PUBLIC_KEY, self.public[self.holder].encode()), (SECRET_KEY, secret.encode()),
                        (SERVER_KEY, self.public[listener].encode())]
        for option, value in options:
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

    def hang_up(self, sockets):
        for socket in sockets:
            self.zmq.zmq_close(socket)

    def close(self, sockets):
        self.hang_up(sockets)
        self.zmq.zmq_ctx_term(self.context)


def frames_of(number):
    """What a client of the protocol with that number sends: the parts of a frame by its name."""
    printed = harness.run([harness.program("print_frames"), number]).stdout
    return {words[0]: [bytes.fromhex(part) for part in words[1:]]
            for line in printed.splitlines() for words in [line.split()]}
