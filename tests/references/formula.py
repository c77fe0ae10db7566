"""Numbers that tests and PyTorch compute in the same way, so that a reference needs no data: see README.md."""

MASK = (1 << 64) - 1


def fnv1a(text):
    """The 64-bit hash of Fowler, Noll and Vo."""
    state = 0xCBF29CE484222325
    for byte in text.encode():
        state = ((state ^ byte) * 0x100000001B3) & MASK
    return state


def unit(stream, i):
    """A multiple of 2^-24 in [0, 1): number i of the stream of that name (splitmix64's finalizer)."""
    bits = (fnv1a(stream) + (i + 1) * 0x9E3779B97F4A7C15) & MASK
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & MASK
    return ((bits ^ (bits >> 31)) >> 40) * 2.0**-24


def values(stream, count, scale):
    """`count` numbers in [-scale, scale), exact in 32 bits when `scale` is a power of two."""
    return [(2 * unit(stream, i) - 1) * scale for i in range(count)]
