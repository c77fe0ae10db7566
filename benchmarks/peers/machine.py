"""Describes the processor of the figures: its name, and its vector extensions for products."""

# Flags of /proc/cpuinfo that affect products, from the narrowest to the widest.
EXTENSIONS = ["avx2", "avx512f", "avx512_bf16", "amx_bf16"]
BF16_PRODUCTS = {"avx512_bf16", "amx_bf16"}


def cpu(path="/proc/cpuinfo"):
    """{"cpu": name, "vector_extensions": [words]} of the first core."""
    words = {}
    with open(path, encoding="utf-8") as text:
        for line in text:
            name, _, value = line.partition(":")
            words.setdefault(name.strip(), value.strip())
    there = words.get("flags", "").split()
    return {"cpu": words.get("model name", "unknown"),
            "vector_extensions": [word for word in EXTENSIONS if word in there]}


def multiplies_bf16(machine):
    return not BF16_PRODUCTS.isdisjoint(machine["vector_extensions"])
