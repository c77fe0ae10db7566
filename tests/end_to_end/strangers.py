"""Floods a job with invalid frames, endless requests, and silent connections."""
import os
import random
import resource
import socket
import struct
import time

from zmq_dealer import Dealers, Name, frames_of

FRAMES_A_SECOND, SPEAKERS, SILENT = 10_000, 20, 500
FRAMES, OPENED, TURNS, ANSWERS = range(4)  # What is counted, in an array that processes share.
BURST = 50
ENDLESS_BYTES = 150 << 20


def greeting(mechanism):
    """ZMTP 3.0 (rfc.zeromq.org/spec/23), and with NULL the command that ends the handshake."""
    hello = b"\xff" + bytes(8) + b"\x7f\x03\x00" + mechanism.ljust(20, b"\0") + bytes(32)
    if mechanism != b"NULL":
        return hello + b"\x04\xc8\x05HELLO" + os.urandom(194)
    ready = b"\x05READY\x0bSocket-Type" + struct.pack(">I", 6) + b"DEALER\x08Identity" + struct.pack(">I", 0)
    return hello + b"\x04" + bytes([len(ready)]) + ready


def connect(port):
    try:
        door = socket.create_connection(("127.0.0.1", port), timeout=5)
    except OSError:
        return None
    door.setblocking(False)
    return door


def open_still(door):
    """Takes what came, and tells whether the other side holds the connection; closes it if not."""
    if door is None:
        return False
    try:
        while door.recv(65536):
            pass
    except BlockingIOError:
        return True
    except OSError:
        pass
    door.close()
    return False


def bursts_due(begin, counts):
    """How many bursts are due by now, at most a tenth of a second's at once."""
    due = int((time.monotonic() - begin) * FRAMES_A_SECOND) - counts[FRAMES]
    return min(due, FRAMES_A_SECOND // 10) // BURST


def without_key(ports, mechanism, stop, counts):
    """Holds SILENT connections, and sends frames that are none through SPEAKERS others, until `stop`."""
    chance = random.Random(7)
    speakers, silent, turn, begin = [None] * SPEAKERS, [None] * SILENT, 0, time.monotonic()
    while not stop.is_set():
        for _ in range(bursts_due(begin, counts)):
            turn = (turn + 1) % SPEAKERS
            if not open_still(speakers[turn]):
                speakers[turn] = connect(ports[turn % len(ports)])
                counts[OPENED] += 1
                if speakers[turn] is None:
                    continue
                frames = greeting(mechanism)
            else:
                frames = b""
            for _ in range(BURST):
                body = chance.randbytes(chance.randrange(1, 200))
                frames += bytes([chance.choice((0, 1)), len(body)]) + body
            try:
                speakers[turn].settimeout(5)
                speakers[turn].sendall(frames)
                speakers[turn].setblocking(False)
            except OSError:
                speakers[turn].close()
                speakers[turn] = None
            counts[FRAMES] += BURST
        for i in range(counts[TURNS] % 10, SILENT, 10):  # A tenth of them in each turn.
            if not open_still(silent[i]):
                silent[i] = connect(ports[i % len(ports)])
                counts[OPENED] += 1
        counts[TURNS] += 1
        stop.wait(0.005)
    for door in filter(None, (*speakers, *silent)):
        door.close()


def endless_parts(ports, stop, counts):
    """Sends ENDLESS_BYTES to each port, all of messages that never end, in parts of a byte; over as many
    connections as that takes."""
    parts = b"\x01\x01x" * 65536
    for port in ports:
        sent = 0
        while sent < ENDLESS_BYTES and not stop.is_set():
            door = connect(port)
            if door is None:
                continue
            door.settimeout(5)
            try:
                door.sendall(greeting(b"NULL"))
                while sent < ENDLESS_BYTES:
                    door.sendall(parts)
                    sent += len(parts)
                    counts[FRAMES] += len(parts) // 3
            except OSError:
                sent += len(parts)  # Of which some have come.
            door.close()
            counts[TURNS] += 1
    counts[OPENED] += 1


class Speaker:
    """One connection with a key, and what its holder may ask there."""

    def __init__(self, dealers, listener, port, kinds):
        name = Name()
        frames = frames_of(name.number)
        self.frames = [frames[kind] for kind in kinds]
        self.socket = dealers.dial(port, listener, name.routing_id())

    def damaged(self, chance):
        """A frame of which a byte is another one, or bytes that never were a frame."""
        if chance.random() < 0.5:
            return [chance.randbytes(chance.randrange(200)) for _ in range(chance.randrange(1, 12))]
        parts = list(chance.choice(self.frames))
        i = chance.randrange(len(parts))
        at = chance.randrange(len(parts[i]))
        parts[i] = parts[i][:at] + bytes([parts[i][at] ^ chance.randrange(1, 256)]) + parts[i][at + 1:]
        return parts


def with_key(ports, keys, requests, stop, counts):
    """Likewise with a reader's key; with `requests` what a reader may ask, as fast as it is taken."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    chance, dealers, turn = random.Random(7), Dealers(keys, "reader", sockets_max=4096), 0
    listeners = (("scheduler", ports[0], ("status",)), ("server", ports[1], ("probe", "pull")))
    silent = [dealers.dial(port, listener, Name().routing_id()) for i in range(SILENT)
              for listener, port, _ in [listeners[i % 2]]]
    speakers = [Speaker(dealers, *listeners[i % 2]) for i in range(SPEAKERS)]
    counts[OPENED] += SILENT + SPEAKERS
    begin = time.monotonic()
    while not stop.is_set():
        taken = 0
        for _ in range(SPEAKERS if requests else bursts_due(begin, counts)):
            turn = (turn + 1) % SPEAKERS
            speaker = speakers[turn]
            for i in range(BURST):
                frame = speaker.frames[i % len(speaker.frames)] if requests else speaker.damaged(chance)
                taken += dealers.send(speaker.socket, frame)
            counts[ANSWERS] += dealers.take(speaker.socket)
            if not requests:
                counts[FRAMES] += BURST
        if requests:
            counts[FRAMES] += taken
        if taken == 0:
            stop.wait(0.002)
    dealers.close([*silent, *(speaker.socket for speaker in speakers)])
