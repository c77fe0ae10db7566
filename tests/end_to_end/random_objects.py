"""Objects of Python of any type, for tests in which no argument may end the interpreter."""
import importlib.util

numpy = importlib.import_module("numpy") if importlib.util.find_spec("numpy") else None

# What a function of the package may raise for a wrong argument, beside its own errors.
MISTAKES = (TypeError, ValueError, OverflowError, BufferError, AttributeError, KeyError)


def random_object(draw, depth=0):
    """An object of any type, in a shape that a column or an argument may have."""
    kinds = ["none", "bool", "int", "float", "text", "bytes", "object", "type", "range", "memory"]
    if depth < 3:
        kinds += ["list", "tuple", "dict", "set", "generator"]
    if numpy is not None:
        kinds += ["array"] * 4
    inner = lambda: random_object(draw, depth + 1)
    return {
        "none": lambda: None, "bool": lambda: draw.random() < 0.5,
        "int": lambda: draw.choice((0, -1, 7, 2 ** 63, -2 ** 63, 2 ** 64, 10 ** 30)),
        "float": lambda: draw.choice((0.5, float("nan"), float("inf"), 1e300, -0.0)),
        "text": lambda: draw.choice(("", "a", "a|b", "\ud800", "\0", "7", "nan", "x" * 1000)),
        "bytes": lambda: draw.choice((b"", b"a", b"\xff\xfe", bytearray(b"b"))),
        "object": object, "type": lambda: int, "range": lambda: range(draw.randrange(9)),
        "memory": lambda: memoryview(bytes(draw.randrange(9))),
        "list": lambda: [inner() for _ in range(draw.randrange(8))],
        "tuple": lambda: tuple(inner() for _ in range(draw.randrange(8))),
        "dict": lambda: {draw.choice("abc"): inner() for _ in range(draw.randrange(4))},
        "set": lambda: {draw.randrange(5) for _ in range(draw.randrange(4))},
        "generator": lambda: (inner() for _ in range(draw.randrange(8))),
        "array": lambda: random_array(draw)}[draw.choice(kinds)]()


def random_array(draw):
    shape = [draw.choice((0, 1, 2, 7)) for _ in range(draw.choice((0, 1, 1, 1, 2, 3)))]
    dtype = draw.choice(("b", "u1", "<i2", ">i8", "i8", "u8", "e", "f4", ">f8", "g", "c8", "?", "U3", ">U2", "S2", "U0",
                         "O", "V3", "M8[s]", "m8[ms]", [("a", "i4"), ("b", "f8")]))
    array = numpy.zeros(shape, dtype=dtype)
    if array.dtype.kind in "iuf":
        array[...] = draw.choice((0, 1, 3))
    if draw.random() < 0.3 and array.ndim:
        array = array[::draw.choice((-1, 2))]
    return array


def random_cells(draw, count):
    if numpy is not None and draw.random() < 0.3:
        return random_array(draw)
    if draw.random() < 0.2:
        return random_object(draw)
    make = draw.choice((lambda: draw.randrange(50), lambda: draw.choice(["a", None, ""]), lambda: ["a", "b"],
                        lambda: draw.random(), lambda: random_object(draw, 2)))
    return [make() for _ in range(count)]
