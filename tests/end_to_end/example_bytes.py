"""Writes records of tf.train.Example, and frames them as TFRecord files do, without TensorFlow."""
import struct


def crc_of_byte(byte):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    return byte


CRC_OF_BYTES = [crc_of_byte(byte) for byte in range(256)]


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_OF_BYTES[(crc ^ byte) & 0xFF]
    return ~crc & 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def framed(record):
    length = struct.pack("<Q", len(record))
    return length + masked(length) + record + masked(record)


def varint(number):
    number &= (1 << 64) - 1
    data = b""
    while number >= 0x80:
        data += bytes([number & 0x7F | 0x80])
        number >>= 7
    return data + bytes([number])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def feature(value):
    """A feature with the value, or the values of a list; none for None."""
    values = value if isinstance(value, list) else [] if value is None else [value]
    if all(isinstance(one, str) for one in values):
        return field(1, b"".join(field(1, one.encode()) for one in values))
    if any(isinstance(one, float) for one in values):
        return field(2, field(1, struct.pack(f"<{len(values)}f", *values)))
    return field(3, field(1, b"".join(map(varint, values))))


def example(row):
    return field(1, b"".join(field(1, field(1, name.encode()) + field(2, feature(value))) for name, value in row.items()))
