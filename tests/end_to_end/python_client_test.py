"""hdps.Client asks a serving process over HTTP and over ZeroMQ: every kind of column, versions, towers, keys, mistakes."""
import socket
import struct
import threading
import unittest

import harness
import served

hdps = served.hdps
why = "" if hdps else "the Python package was not built: no pybind11 or Python's headers"


def bits(array):
    return served.floats(array.tolist())


def two_tower(folder):
    """A job of users and items, and the file of its items."""
    rows = [f"{i % 2},u{i % 5},{i % 7},i{i % 6},{'a|b' if i % 3 else 'c'}" for i in range(64)]
    (folder / "t.csv").write_text("\n".join(rows) + "\n")
    (folder / "items.csv").write_text("".join(f",,,i{i},{'a|b' if i % 3 else 'c'}\n" for i in range(6)))
    columns = [{"name": "y", "type": "label"}, {"name": "user"}, {"name": "age", "type": "numeric"}, {"name": "item"},
               {"name": "tags", "type": "multi"}]
    return {"name": "towers", "data": {"train": ["t.csv"], "columns": columns},
            "model": {"type": "two_tower", "embedding_dim": 4, "hidden": [8, 6], "user_features": ["user"],
                      "item_features": ["item", "tags"], "device": "cpu"},
            "train": {"batch_size": 16, "epochs": 2}, "checkpoint": {"every_epochs": 1, "keep": 4}}


@unittest.skipIf(why, why)
class Client(served.ServeCase):
    def setUp(self):
        super().setUp()
        harness.train(harness.write_job(self.out("job.json"), two_tower(self.folder)), self.out("run"))
        self.model = hdps.Model.open(self.out("run"), which="newest")

    def both(self, *flags, **options):
        """A client of each way, and the token."""
        process, port, token = self.serve(f"--checkpoint={self.out('run')}", *flags)
        clients = [hdps.Client(f"http://127.0.0.1:{port}", token=token, **options),
                   hdps.Client(self.messages_at, **options)]
        for client in clients:
            self.addCleanup(client.close)
        return process, clients

    def test_every_kind_of_column(self):
        """Lists and arrays of all types, missing cells, lists of unequal lengths, one cell for all rows."""
        rows = {"user": ["u1", None, "nobody", ""], "age": [1, 2.5, None, -0.0], "item": ["i1", "i2", "new", "i5"],
                "tags": [["a", "b"], [], None, ["c", "", "a"]], "more": [1, 2, 3, 4]}
        tables = [rows,
                  {**rows, "age": memoryview(struct.pack("4f", 1, 0.1, float("nan"), -3)).cast("f")},
                  {**rows, "age": memoryview(struct.pack("4d", 1, 0.1, float("nan"), -3)).cast("d")},
                  {**rows, "user": memoryview(struct.pack("4q", 1, -2, 2**62, 0)).cast("q")},
                  {**rows, "user": [True, False, None, True], "tags": ["a|b", "", "c", "zz"]}]
        process, clients = self.both()
        for client in clients:
            for table in tables:
                scores = client.predict(table)
                self.assertEqual(bits(scores), bits(self.model.predict(table)))
                self.assertEqual(scores.shape, (4,))
                both = client.predict(table, outputs=["logit", "probability"])
                self.assertEqual(list(both), ["logit", "probability"])
                self.assertEqual(bits(both["logit"]), bits(self.model.logits(table)))
            one = {"user": "u2", "age": 3, "item": ["i1", "i2", "i3"], "tags": [["a", "c"]]}
            same = {"user": ["u2"] * 3, "age": [3] * 3, "item": one["item"], "tags": [["a", "c"]] * 3}
            self.assertEqual(bits(client.predict(one)), bits(self.model.predict(same)))
            with self.assertRaisesRegex(hdps.JobError, "no rows"):
                client.predict({name: [] for name in same})
            self.assertEqual(client.version, self.model.step)
        self.stop(process)

    def test_towers(self):
        """Vectors of one tower's inputs, and the best items."""
        process, clients = self.both(f"--items={self.out('items.csv')}")
        users = {"user": ["u1", "u4", "nobody"], "age": [1, None, 3]}
        items = {"item": [f"i{i}" for i in range(6)], "tags": ["a|b" if i % 3 else "c" for i in range(6)]}
        answers = []
        for client in clients:
            self.assertEqual([one["name"] for one in client.metadata()["outputs"]],
                             ["probability", "logit", "user_vector", "item_vector", "top_k", "top_k_score"])
            vectors = client.predict(users, outputs=["user_vector"])["user_vector"]
            self.assertEqual(bits(vectors), bits(self.model.user_vectors(users)))
            self.assertEqual(bits(client.predict(items, outputs=["item_vector"])["item_vector"]),
                             bits(self.model.item_vectors(items)))
            best = client.predict(users, outputs=["top_k"], top_k=4)
            self.assertEqual(best["top_k_score"].shape, (3, 4))
            answers.append((best["top_k"], bits(best["top_k_score"])))
            for row, (found, scores) in enumerate(zip(best["top_k"], best["top_k_score"].tolist())):
                pairs = {"user": [users["user"][row]] * 6, "age": [users["age"][row]] * 6, **items}
                logits = dict(zip(items["item"], self.model.logits(pairs).tolist()))
                self.assertEqual(sorted(scores, reverse=True), scores)
                # Seven roundings of sums of magnitudes that two unit vectors over the temperature bound.
                close = 2**-23 * 10 / 0.1
                for item, score in zip(found, scores):
                    self.assertAlmostEqual(score, logits[item], delta=close)
                self.assertGreaterEqual(scores[-1] + close, sorted(logits.values())[2])
            with self.assertRaisesRegex(hdps.JobError, "k is|k .* expected"):
                client.predict(users, outputs=["top_k"], top_k=2**30)
            with self.assertRaisesRegex(hdps.JobError, "age"):
                client.predict({"user": ["u1"]}, outputs=["user_vector"])
        self.assertEqual(answers[0], answers[1])
        self.stop(process)

    def test_versions_rows_and_the_token(self):
        process, clients = self.both()
        over_http, over_messages = clients
        rows = {"user": ["u1"], "age": [1], "item": ["i1"], "tags": ["a"]}
        steps = sorted(int(path.name.rpartition("_")[2]) for path in self.out("run").glob("checkpoint/*_*[0-9]"))
        self.assertEqual([len(steps), steps[-1]], [2, self.model.step])
        for client in clients:
            self.assertEqual(client.metadata(), over_http.metadata())
            self.assertTrue(client.ready())
            client.predict(rows, version=steps[1])
            with self.assertRaisesRegex(hdps.JobError, f"{steps[1]}"):
                client.predict(rows, version=steps[0])
        table = next(name for name, facts in self.model.tables.items() if facts["dim"] > 1)
        feature = "item"
        values = ["i1", "new", "i5"]
        expected = self.model.lookup(table, feature=feature, values=values)
        keys = self.model.keys(feature, values)
        for client in clients:
            found = client.lookup(table, feature=feature, values=values)
            self.assertEqual((bits(found), found.shape, client.version),
                             (bits(expected), expected.shape, self.model.step))
            self.assertEqual(bits(client.lookup(table, keys=keys)), bits(expected))
            self.assertEqual(client.lookup(table, keys=[-1]).shape, (1, expected.shape[1]))
            for asked, needle in (({"keys": [1], "feature": feature}, "either"), ({}, "either"),
                                  ({"feature": feature}, "either"), ({"keys": []}, "at least one"),
                                  ({"feature": "itm", "values": ["a"]}, "item"), ({"keys": [1] * 9000}, "8192")):
                with self.subTest(client=client, **asked), self.assertRaisesRegex(hdps.JobError, needle):
                    client.lookup(table, **asked)
            with self.assertRaisesRegex(hdps.JobError, table):
                client.lookup(table + "s", keys=[1])
        over_http.use(steps[0])
        harness.wait_until(lambda: bits(over_http.predict(rows)) and over_http.version == steps[0], 30, "the older version")
        older = hdps.Model.open(self.out(f"run/checkpoint/step_{steps[0]:010}"))
        for client in clients:
            both = client.predict(rows, outputs=["probability", "item_vector"])
            self.assertEqual(client.version, steps[0])
            self.assertEqual(bits(both["probability"]), bits(older.predict(rows)))
            self.assertEqual(bits(both["item_vector"]), bits(older.item_vectors(rows)))
        over_http.use("newest")
        with hdps.Client(over_http._url) as without:
            without.predict(rows)
            with self.assertRaisesRegex(hdps.JobError, "token"):
                without.use(steps[0])
        with self.assertRaisesRegex(hdps.JobError, "over HTTP"):
            over_messages.use(1)
        self.stop(process)

    def test_the_log_names_requests(self):
        log = self.out("requests.csv")
        process, clients = self.both(f"--log_requests={log}", "--log_share=1")
        rows = {"user": ["u1", "u2"], "age": [1, 2], "item": ["i1", "i2"], "tags": [["a"], ["a", "b"]]}
        for number, client in enumerate(clients):
            client.predict(rows, request_id=f"visit {number}")
            with self.assertRaisesRegex(hdps.JobError, "bytes"):
                client.predict(rows, request_id="x" * (17 << 20))
        self.stop(process)
        logged = [line.split(",") for line in log.read_text().splitlines()]
        self.assertEqual(sorted((line[1], line[-5], line[-4]) for line in logged),
                         [("u1", "visit 0", "0"), ("u1", "visit 1", "0"), ("u2", "visit 0", "1"), ("u2", "visit 1", "1")])

    def test_several_threads_and_an_end(self):
        process, clients = self.both()
        rows = {"user": [f"u{i}" for i in range(50)], "age": [1] * 50, "item": ["i1"], "tags": ["a"]}
        expected = bits(clients[0].predict(rows))
        found = []

        def ask(client):
            found.append(all(bits(client.predict(rows)) == expected for _ in range(20)))
            client.close()

        threads = [threading.Thread(target=ask, args=(client,)) for client in clients for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [True] * 8)
        clients[0]._way._connection().sock.shutdown(socket.SHUT_RDWR)  # As if the server had closed it.
        self.assertEqual(bits(clients[0].predict(rows)), expected)
        self.stop(process)
        self.assertFalse(clients[0].ready())
        with self.assertRaisesRegex(hdps.RunError, "nobody answers at"):
            clients[0].predict(rows)

    def test_keys(self):
        """A reader may ask, a worker may not, and a server with keys hears nobody without them."""
        harness.run([harness.program("hdps"), "keygen", f"--out={self.out('keys')}"])
        process, _, _ = self.serve(f"--checkpoint={self.out('run')}", f"--keys={self.out('keys')}",
                                   "--listen=tcp://127.0.0.1:0")
        rows = {"user": ["u1"], "age": [1], "item": ["i1"], "tags": ["a"]}
        reader = hdps.Client(self.messages_at, keys=self.out("keys"))
        self.assertEqual(bits(reader.predict(rows)), bits(self.model.predict(rows)))
        table = next(iter(self.model.tables))
        self.assertEqual(bits(reader.lookup(table, keys=[7])), bits(self.model.lookup(table, keys=[7])))
        workers = self.out("workers")
        workers.mkdir()
        for name in ("allowed", "worker.key"):
            (workers / name).write_bytes((self.out("keys") / name).read_bytes())
            (workers / name).chmod(0o600)
        with self.assertRaisesRegex(hdps.JobError, "reader|admin"):
            hdps.Client(self.messages_at, keys=workers)
        self.assertFalse(hdps.Client(self.messages_at, timeout=1).ready(), "it has no key")
        self.stop(process)

    def test_mistakes(self):
        process, clients = self.both()
        rows = {"user": ["u1"], "age": [1], "item": ["i1"], "tags": ["a"]}
        for client in clients:
            for call, needle in (
                    (lambda: client.predict({**rows, "age": ["old"]}), "age"),
                    (lambda: client.predict({"user": ["u1"], "item": ["i1"], "tags": ["a"]}), "age"),
                    (lambda: client.predict({"usr": ["u1"]}), "none of the model's inputs: expected user, age"),
                    (lambda: client.predict({**rows, "age": [1, 2], "item": ["i", "j", "k"]}),
                     "column 'item' has 3 rows: expected 2"),
                    (lambda: client.predict({**rows, "item": ["i"] * 9000}), "9000 rows in a request: expected at most 8192"),
                    (lambda: client.predict({**rows, "item": ["i" * (17 << 20)]}), "16777216 bytes"),
                    (lambda: client.predict(rows, outputs=["logits"]), "logit"),
                    (lambda: client.predict(rows, outputs=["top_k"]), "top_k")):
                with self.subTest(needle, client=client), self.assertRaisesRegex(hdps.JobError, needle):
                    call()
            with self.assertRaises(TypeError):
                client.predict([1, 2])
        port = clients[0]._url
        for url, options, needle in ((port, {"model": "tower"}, "towers"), (self.messages_at, {"model": "tower"}, "towers"),
                                     ("127.0.0.1:80", {}, "expected http://HOST:PORT"), (port + "/v2", {}, "expected http"),
                                     (port, {"keys": "k"}, "keys"), (self.messages_at, {"token": "t"}, "token"),
                                     ("tcp://10.0.0.1:1", {}, "keys"), ("tcp://127.0.0.1", {}, "port|PORT")):
            with self.subTest(url, **options), self.assertRaisesRegex(hdps.JobError, needle), \
                    hdps.Client(url, **options) as client:
                client.predict(rows)
        self.stop(process)
        done = harness.run([harness.program("hdps"), "serve", f"--checkpoint={self.out('run')}", "--http=none",
                            "--listen=tcp://0.0.0.0:0"], expect=2)
        self.assertIn("--listen: ", done.stderr)
        done = harness.run([harness.program("hdps"), "serve", f"--checkpoint={self.out('run')}", "--item_text=item"], expect=2)
        self.assertIn("give --items=FILE as well", done.stderr)
        done = harness.run([harness.program("hdps"), "serve", f"--checkpoint={self.out('run')}", "--items=nowhere"],
                           expect=None)
        self.assertIn("--items: there is no file", done.stderr)


if __name__ == "__main__":
    harness.main()
