"""Tests hdps export --format=vectors: FAISS finds in the index what a search through all vectors finds."""
import array
import heapq
import json
import math
import operator
import pathlib
import random
import struct
import subprocess
import unittest

import harness

HDPS = harness.program("hdps")
SEARCH = harness.program("search_index")
ITEMS = harness.share(5000, 100000, "95000 of 100000 items")
QUERIES, BEST = 100, 10
FAISS = ["faiss-cpu==1.15.1", "numpy==1.26.4"]
# Searches an index by FAISS, and compares with the products of all vectors: INDEX VECTORS QUERIES BEST.
BY_FAISS = """
import json, sys
import faiss, numpy
path, vectors, queries, best = sys.argv[1:]
data = open(vectors, "rb").read()
head = 8 + int.from_bytes(data[:8], "little")
shape = json.loads(data[8:head])["vectors"]["shape"]
vectors = numpy.frombuffer(data, "<f4", offset=head).reshape(shape).astype(float)
queries = numpy.fromfile(queries, "<f4").reshape(-1, shape[1])
index = faiss.read_index(path)
assert index.metric_type == faiss.METRIC_INNER_PRODUCT and index.ntotal == shape[0]
found = index.search(queries, int(best))[1]
products = queries.astype(float) @ vectors.T
truth = numpy.argsort(-products, axis=1, kind="stable")[:, :int(best)]
# Both orders give the same products up to the roundings of a sum of floats.
bound = 2 * shape[1] * 2.0**-24 * numpy.linalg.norm(queries, axis=1)[:, None]
apart = numpy.abs(numpy.take_along_axis(products, found, 1) - numpy.take_along_axis(products, truth, 1))
assert all(len(set(row)) == len(row) for row in found.tolist())
print(json.dumps({"version": faiss.__version__, "same": int((found == truth).all(axis=1).sum()),
                  "within": bool((apart <= bound).all())}))
"""
RULE = {"kind": "lazy_adam", "learning_rate": 0.01, "epsilon": 1e-8}


def dot(a, b):
    return sum(map(operator.mul, a, b))


def read_vectors(path):
    """The rows of the tensor "vectors" of a safetensors file, and its metadata."""
    data = pathlib.Path(path).read_bytes()
    length, = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + length])
    rows, dim = header["vectors"]["shape"]
    floats = array.array("f", data[8 + length:])
    assert header["vectors"]["dtype"] == "F32" and len(floats) == rows * dim
    return [floats[i * dim:(i + 1) * dim] for i in range(rows)], header["__metadata__"]


class VectorsTest(harness.Case):
    def setUp(self):
        """Trains a two_tower model on a log of users and items whose latent vectors decide."""
        super().setUp()
        draw = random.Random(11)
        users, items = ([[draw.gauss(0, 1) for _ in range(3)] for _ in range(n)] for n in (200, ITEMS))
        with open(self.out("train.csv"), "w") as log:
            for _ in range(6 * ITEMS):
                user, item = draw.randrange(len(users)), draw.randrange(ITEMS)
                likes = 1 / (1 + math.exp(-dot(users[user], items[item])))
                log.write(f"{int(draw.random() < likes)},u{user},i{item},{self.group(items[item])}\n")
        self.out("items.csv").write_text("".join(f"i{i},{self.group(items[i])}\n" for i in range(ITEMS)))
        self.job = harness.write_job(self.out("job.json"), {
            "name": "planted_items", "seed": 5,
            "data": {"train": ["train.csv"], "columns": [
                {"name": "label", "type": "label"}, {"name": "user"}, {"name": "item"}, {"name": "group"}]},
            "model": {"type": "two_tower", "user_features": ["user"], "item_features": ["item", "group"],
                      "hidden": [32, 16], "embedding_dim": 8, "device": "cpu", "deep_optimizer": RULE,
                      "dense_optimizer": RULE},
            "train": {"batch_size": 512, "epochs": 1}})
        harness.train(self.job, self.out("run"))

    @staticmethod
    def group(item):
        return "g" + "".join("01"[x > 0] for x in item)

    def export(self, name, *flags, expect=0):
        return harness.run([HDPS, "export", f"--checkpoint={self.out('run')}", "--format=vectors",
                            f"--items={self.out('items.csv')}", f"--out={self.out(name)}", *flags], expect=expect)

    def found(self, name, queries):
        done = subprocess.run([SEARCH, self.out(name) / "items.faiss", str(BEST)], stdout=subprocess.PIPE,
                              input=b"".join(query.tobytes() for query in queries), timeout=300, check=True)
        return [[int(word) for word in line.split()] for line in done.stdout.splitlines()]

    def test_items_and_their_indices(self):
        self.assertIn(f"{ITEMS:,} items, vectors of 16 floats", self.export("exact").stdout)
        vectors, metadata = read_vectors(self.out("exact") / "items.safetensors")
        texts = (self.out("exact") / "items.txt").read_text().splitlines()
        self.assertEqual(texts, [f"i{i}" for i in range(ITEMS)])
        self.assertEqual(len(vectors), ITEMS)
        self.assertEqual(metadata["temperature"], "0.1")
        for vector in vectors:
            self.assertAlmostEqual(dot(vector, vector), 1, places=5)
        if not pathlib.Path(SEARCH).exists():
            raise unittest.SkipTest("this build lacks libfaiss")
        draw = random.Random(3)
        # Each somewhat beside an item, as a user is beside what he likes.
        queries = [array.array("f", (x + draw.gauss(0, 0.1) for x in draw.choice(vectors))) for _ in range(QUERIES)]
        products = [[dot(query, vector) for vector in vectors] for query in queries]
        best = [heapq.nlargest(BEST, range(ITEMS), of_query.__getitem__) for of_query in products]
        # The index adds up 16 products of floats: each rounding is half an epsilon of at most the length.
        same = 0
        for query, of_query, truth, found in zip(queries, products, best, self.found("exact", queries), strict=True):
            bound = 16 * 2.0 ** -24 * math.sqrt(dot(query, query))
            self.assertEqual(len(set(found)), BEST)
            for place, other in zip(found, truth):
                self.assertLessEqual(abs(of_query[place] - of_query[other]), 2 * bound)
            same += found == truth
        self.export("hnsw", "--index=hnsw32")
        hits = sum(len(set(a) & set(b)) for a, b in zip(best, self.found("hnsw", queries), strict=True))
        recall = hits / (BEST * QUERIES)
        harness.figure(f"{ITEMS} items: the exact index gives the {BEST} best of {same} of {QUERIES} queries in the "
                       f"same order; recall@{BEST} of hnsw32 {recall:.4f}")
        self.assertGreaterEqual(recall, 0.95)
        self.assertIn("exists", self.export("hnsw", expect=2).stderr)

    def test_index_by_the_package_of_pypi(self):
        self.export("exact")
        if not (self.out("exact") / "items.faiss").exists():
            self.skipTest("this build lacks libfaiss")
        python = harness.python_with("faiss", FAISS)
        if python is None:
            self.skipTest(f"{' '.join(FAISS)} cannot be installed from PyPI")
        draw = random.Random(4)
        queries = array.array("f", (draw.gauss(0, 1) for _ in range(16 * QUERIES)))
        self.out("queries").write_bytes(queries.tobytes())
        found = json.loads(harness.run([python, "-c", BY_FAISS, self.out("exact") / "items.faiss",
                                        self.out("exact") / "items.safetensors", self.out("queries"), BEST]).stdout)
        harness.figure(f"{ITEMS} items: FAISS {found['version']} of PyPI gives the {BEST} best of {found['same']} of "
                       f"{QUERIES} queries in the same order as NumPy")
        self.assertTrue(found["within"])


if __name__ == "__main__":
    harness.main()
