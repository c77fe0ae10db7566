"""The limits of hdps serve, its end under load, and planted mistakes of command lines and requests."""
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import tempfile
import threading

import harness
import served

ROWS_MAX, BODY_MAX = 8192, 16 << 20
TOKEN = "0123456789abcdef0123456789abcdef"


class Limited(served.ServeCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.made = pathlib.Path(tempfile.mkdtemp(prefix="hdps_served_"))
        cls.addClassCleanup(shutil.rmtree, cls.made, ignore_errors=True)
        (cls.made / "t.csv").write_text("".join(f"{i % 2},u{i % 5},{i % 7}\n" for i in range(64)))
        job = harness.write_job(cls.made / "job.json", {
            "name": "clicks", "data": {"train": ["t.csv"], "columns": [
                {"name": "y", "type": "label"}, {"name": "user"}, {"name": "age", "type": "numeric"}]},
            "model": {"type": "wide_deep", "embedding_dim": 4, "hidden": [8], "device": "cpu"},
            "train": {"batch_size": 16}})
        cls.run_folder = cls.made / "run"
        harness.train(job, cls.run_folder)

    def checkpoint(self):
        return f"--checkpoint={self.run_folder}"

    @staticmethod
    def body(rows):
        return served.Columns({"user": [f"u{i % 9}" for i in range(rows)],
                               "age": [str(i % 11) for i in range(rows)]}, ["age"]).infer_json()[0]


class Limits(Limited):
    def test_rows_and_bytes_beyond_the_limit_are_413(self):
        process, port, _ = self.serve(self.checkpoint())
        connection = self.connect(port)
        self.assertEqual(self.ask(connection, "/v2/models/clicks/infer", self.body(ROWS_MAX))[0], 200)
        for body in (self.body(ROWS_MAX + 1), b"[" + b" " * BODY_MAX):
            status, _, answer = self.ask(connection, "/v2/models/clicks/infer", body)
            self.assertEqual(status, 413, answer)
            self.assertIn("error", json.loads(answer))
            connection = self.connect(port)
        self.assertEqual(self.ask(connection, "/v2/models/clicks/infer", self.body(1))[0], 200)
        self.stop(process)

    def test_more_than_may_wait_are_503(self):
        """Requests that become whole at the same time: some are answered, with equal scores, and the others told when to
        come again."""
        process, port, _ = self.serve(self.checkpoint(), "--threads=1")
        body = self.body(ROWS_MAX)
        connections = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(200)]
        head = f"POST /v2/models/clicks/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        for one in connections:
            one.sendall(head.encode() + body[:-1])
        for one in connections:
            one.sendall(body[-1:])
        answers = {200: set(), 503: set()}
        for one in connections:
            answer = http.client.HTTPResponse(one)
            answer.begin()
            answers[answer.status].add((answer.read(), answer.getheader("Retry-After")))
            one.close()
        self.assertEqual((len(answers[200]), len(answers[503])), (1, 1), answers[503])
        (refused, again), = answers[503]
        self.assertEqual((json.loads(refused)["error"][:30], again), ("as many requests wait as may; ", "1"))
        self.assertEqual(self.ask(self.connect(port), "/v2/models/clicks/infer", self.body(1))[0], 200)
        self.stop(process)


class Strangers(Limited):
    def test_a_path_that_is_not_there_is_404_for_who_may_ask(self):
        process, port, _ = self.serve(self.checkpoint())
        self.assertEqual(self.ask(self.connect(port), "/none")[0], 404, "on loopback everyone may")
        self.assertEqual(self.ask(self.connect(port), "/metrics")[0], 401)
        self.stop(process)
        token = self.out("token")
        token.write_text(TOKEN)
        token.chmod(0o600)
        process, port, _ = self.serve(self.checkpoint(), f"--http_token_file={token}")
        self.assertEqual(self.ask(self.connect(port), "/v2/models/clicks/ready")[0], 200, "a probe has no token")
        for path in ("/none", "/v2/models/clicks", "/v2/models/none", "/v2/models/none/ready"):
            self.assertEqual(self.ask(self.connect(port), path)[0], 401, path)
            self.assertEqual(self.ask(self.connect(port), path, token=TOKEN)[0], 404 if "none" in path else 200, path)
        self.stop(process)


class Joined(Limited):
    def test_requests_that_wait_for_others_are_counted_by_batch(self):
        """Clients that ask at once have the bits of requests alone, in fewer batches than requests."""
        token = self.out("token")
        token.write_text(TOKEN)
        token.chmod(0o600)
        bodies = [served.Columns({"user": [f"u{i}"] * (1 + i % 3), "age": [str(i)] * (1 + i % 3)}, ["age"]).infer_json()[0]
                  for i in range(8)]
        answers = {}
        for wait in (0, 100000):
            process, port, _ = self.serve(self.checkpoint(), f"--batch_wait_us={wait}", f"--http_token_file={token}")
            connections = [self.connect(port) for _ in bodies]
            for connection, body in zip(connections, bodies):
                connection.request("POST", "/v2/models/clicks/infer", body, {"Authorization": f"Bearer {TOKEN}"})
            answers[wait] = [served.scores_of_json(connection.getresponse().read()) for connection in connections]
            figures = self.ask(self.connect(port), "/metrics", token=TOKEN)[2].decode()
            rows, batches = (int(re.search(rf'^hdps_serving_{name}_total{{model="clicks"}} (\d+)$', figures, re.M)[1])
                             for name in ("rows", "batches"))
            self.assertEqual(rows, sum(1 + i % 3 for i in range(8)))
            # A thread waits for a tenth of a second, so at least two of eight that were sent at once meet.
            self.assertTrue(batches == 8 if wait == 0 else batches < 8, batches)
            self.stop(process)
        self.assertEqual(answers[0], answers[100000])


class Stop(Limited):
    def test_a_request_at_hand_is_answered_and_nobody_else_is_let_in(self):
        process, port, _ = self.serve(self.checkpoint())
        body = self.body(100)
        slow = socket.create_connection(("127.0.0.1", port), timeout=60)
        slow.sendall(f"POST /v2/models/clicks/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
                     .encode() + body[:50])
        probe = self.connect(port)
        self.assertEqual(self.ask(probe, "/v2/health/ready")[0], 200)
        os.kill(process.pid, signal.SIGTERM)

        def refused():
            try:
                socket.create_connection(("127.0.0.1", port), timeout=60).close()
                return False
            except ConnectionRefusedError:
                return True

        harness.wait_until(refused, 5, "the end of listening")
        self.assertEqual(self.ask(probe, "/v2/health/ready")[0], 503)
        self.assertIsNone(process.poll(), "it waits for the request at hand")
        slow.sendall(body[50:])
        answer = http.client.HTTPResponse(slow)
        answer.begin()
        self.assertEqual((answer.status, len(json.loads(answer.read())["outputs"][0]["data"])), (200, 100))
        self.assertEqual(answer.getheader("Connection"), "close")
        slow.close()
        process.communicate(timeout=10)
        self.assertEqual(process.returncode, 0)

    def test_a_request_that_never_ends_does_not_hold_the_stop(self):
        process, port, _ = self.serve(self.checkpoint())
        slow = socket.create_connection(("127.0.0.1", port), timeout=60)
        slow.sendall(b"POST /v2/models/clicks/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 90\r\n\r\n{")
        self.assertEqual(self.ask(self.connect(port), "/v2/health/ready")[0], 200)
        os.kill(process.pid, signal.SIGTERM)
        process.communicate(timeout=10)
        self.assertEqual(process.returncode, 0)
        slow.close()

    def test_stop_under_load(self):
        """Each request that was sent over a connection which had been answered before is answered, or was never taken."""
        process, port, _ = self.serve(self.checkpoint())
        body, counts, failed = self.body(32), [0] * 8, []

        def load(worker):
            while True:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                answered = 0
                try:
                    while True:
                        status, headers, answer = self.ask(connection, "/v2/models/clicks/infer", body)
                        if status != 200:
                            failed.append(answer)
                            return
                        json.loads(answer)
                        answered += 1
                        counts[worker] += 1
                        if headers.get("Connection") == "close":
                            break
                except (OSError, http.client.HTTPException) as error:
                    if answered:
                        failed.append(repr(error))
                    return
                finally:
                    connection.close()

        threads = [threading.Thread(target=load, args=(i,)) for i in range(len(counts))]
        for one in threads:
            one.start()
        harness.wait_until(lambda: min(counts) > 20, 60, "answers for everyone")
        os.kill(process.pid, signal.SIGTERM)
        process.communicate(timeout=10)
        for one in threads:
            one.join(60)
        self.assertEqual((process.returncode, failed), (0, []))
        harness.figure(f"SIGTERM under load: {sum(counts)} requests, none failed")


class Mistakes(Limited):
    def test_command_lines(self):
        """Each ends with 2, and names the flag, its value and the mend."""
        run = self.run_folder
        token = self.out("token")
        token.write_text(TOKEN)
        token.chmod(0o644)
        odd = self.out("odd")
        harness.train(self.made / "job.json", odd, sets={"name": "two words"})
        mistakes = [
            ([], "--checkpoint is missing", "--model=NAME:OUT"),
            ([f"--checkpoint={self.out('none')}"], str(self.out("none"))),
            ([f"--checkpoint={self.made}"], "there is no checkpoint that can be served"),
            ([f"--checkpoint={run}", f"--model=a:{run}"], "--checkpoint and --model contradict each other"),
            (["--name=a", f"--model=a:{run}"], "--name and --model contradict each other"),
            ([f"--checkpoint={run}", "--name=a/b"], "--name: 'a/b' cannot stand in a path"),
            ([f"--checkpoint={odd}"], "'two words' cannot stand in a path", "--name=NAME"),
            (["--model=clicks"], "--model=clicks: expected NAME:OUT"),
            (["--model=clicks:"], "expected NAME:OUT"),
            ([f"--model=:{run}"], "cannot stand in a path"),
            ([f"--model=a:{run}", f"--model=a:{run}"], "two models are called 'a'"),
            ([f"--checkpoint={run}", "--which=newst"], "--which=newst", "newest"),
            ([f"--checkpoint={run}", "--which=99"], "99", "4"),
            ([f"--checkpoint={run}", "--unknown=zeros"], "--unknown=zeros: expected initial or zero"),
            ([f"--checkpoint={run}", "--threads=-1"], "--threads=-1", "4096"),
            ([f"--checkpoint={run}", "--batch_wait_us=-1"], "--batch_wait_us=-1 is out of range; give 0 to 100000"),
            ([f"--checkpoint={run}", "--batch_wait_us=100001"], "--batch_wait_us=100001", "100000"),
            ([f"--checkpoint={run}", "--memory_limit=much"], "--memory_limit=much: expected bytes, as 512MiB"),
            ([f"--checkpoint={run}", "--memory_limit=1MiB"], "MiB"),
            ([f"--checkpoint={run}", "--spill_path=/tmp"], "--spill_path=/tmp: it has an effect beside --memory_limit alone"),
            ([f"--checkpoint={run}", "--http=8080"], "--http", "127.0.0.1:8080"),
            ([f"--checkpoint={run}", "--http=none"], "--http=none: nothing is served"),
            ([f"--checkpoint={run}", "--http=0.0.0.0:0"], "other machines reach this address"),
            ([f"--checkpoint={run}", "--http=127.0.0.1:0", f"--http_token_file={token}"], f"chmod 600 {token}"),
            ([f"--checkpoint={run}", "--log=loud"], "--log", "loud"),
            ([f"--checkpoint={run}", "--port=80"], "--port: there is no such flag"),
        ]
        for flags, *needles in mistakes:
            with self.subTest(flags=flags):
                done = harness.run([harness.program("hdps"), "serve", *flags], expect=2, timeout=20)
                for needle in needles:
                    self.assertIn(needle, done.stderr)
        harness.figure(f"planted mistakes on command lines: {len(mistakes)}")

    def test_requests(self):
        """Each is answered with its status and a sentence with the input, the row, the value and what would be right."""
        process, port, _ = self.serve(self.checkpoint())
        connection = self.connect(port)

        def v2(*inputs, **more):
            return json.dumps({"inputs": list(inputs), **more})

        user = {"name": "user", "shape": [2], "datatype": "BYTES", "data": ["a", "b"]}
        age = {"name": "age", "shape": [2], "datatype": "FP32", "data": [1, 2]}
        infer, predict = "/v2/models/clicks/infer", "/v1/models/clicks:predict"
        lookup = "/v1/models/clicks:lookup"
        mistakes = [
            (404, "/v2/models/click/infer", v2(user, age), "there is no model 'click'", "did you mean"),
            (404, "/v2/models/clicks/versions/99/infer", v2(user, age), "99", "4"),
            (404, "/v2/models/clicks/guess", v2(user, age), "'guess'", "infer"),
            (404, "/v1/models/clicks:classify", "{}", "'classify'", "predict"),
            (405, "/v2/models/clicks", "{}", "GET"),
            (401, "/v1/models/clicks:use", '{"version": 4}', "token"),
            (400, infer, "", ""),
            (400, infer, "{", ""),
            (400, infer, "[]", ""),
            (400, infer, "{}", "inputs"),
            (400, infer, v2(user), "age"),
            (400, infer, v2(user, {**age, "name": "agee"}), "agee", "age"),
            (400, infer, v2(user, age, age), "age"),
            (400, infer, v2(user, {**age, "data": [1, "x"]}), "age", "x"),
            (400, infer, v2(user, {**age, "data": [1]}), "age", "2"),
            (400, infer, v2(user, {**age, "shape": [3], "data": [1, 2, 3]}), "age"),
            (400, infer, v2(user, {**age, "shape": [-1]}), "age", "shape"),
            (400, infer, v2(user, {**age, "datatype": "FP31"}), "age", "FP31"),
            (400, infer, v2({**user, "datatype": "FP32", "data": [1.5, 2]}, age), "user"),
            (400, infer, v2(user, age, outputs=[{"name": "logits"}]), "logits", "logit"),
            (400, predict, '{"instances": []}', ""),
            (400, predict, '{"instances": [{"user": "a"}]}', "age"),
            (400, predict, '{"instances": [{"user": "a", "age": 1}, {"user": "b", "age": "y"}]}', "age", "1", "y"),
            (400, predict, '{"rows": []}', "instances"),
            (400, lookup, '{"table": "none", "keys": [1]}', "none", "wide, deep"),
            (400, lookup, '{"keys": [1]}', "table"),
        ]
        for status, path, body, *needles in mistakes:
            with self.subTest(path=path, body=body):
                found, _, answer = self.ask(connection, path, body)
                self.assertEqual(found, status, answer)
                said = json.loads(answer)["error"]
                for needle in needles:
                    self.assertIn(needle, said)
        body, headers = served.Columns({"user": ["a"], "age": ["1"]}, ["age"]).infer_binary()
        for length in ("", "x", "-1", "99999", "5"):
            found, _, answer = self.ask(connection, infer, body, {**headers, "Inference-Header-Content-Length": length})
            self.assertEqual((found, list(json.loads(answer))), (400, ["error"]), length)
        self.assertEqual(self.ask(connection, infer, v2(user, age))[0], 200, "it goes on")
        self.stop(process)
        harness.figure(f"planted mistakes of requests: {len(mistakes) + 5}")


if __name__ == "__main__":
    harness.main()
