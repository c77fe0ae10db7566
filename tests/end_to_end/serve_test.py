"""hdps serve answers with the bits of hdps predict, and as curl and Triton's client expect."""
import gzip
import json
import pathlib
import random
import re

import harness
import served

RECIPES = harness.ROOT / "examples" / "recipes"
LIST = harness.ROOT / "common" / "job" / "recipes" / "recipe_list.def"
ROWS = 64


def lines_of(file, count):
    """The first rows of a packed file, and after them some with values that no training row has."""
    with gzip.open(file, "rt") as text:
        lines = [line.strip() for line in text if "," in line][:count]
    return lines + [re.sub(r"i\d+$", f"i9{i}", line.replace("Private", f"unseen{i}")) for i, line in enumerate(lines[:9])]


class Equality(served.ServeCase):
    """`hdps predict` on the same checkpoint and rows has the same bits."""

    def check(self, connection, name, columns, wanted):
        for form, found in self.answered(connection, name, columns).items():
            self.assertEqual(found, wanted, (name, form))
        return len(wanted)

    def test_all_recipes_in_one_process(self):
        names = re.findall(r"^HDPS_RECIPE\((\w+),", LIST.read_text(), re.M)
        models, wanted, columns = [], {}, {}
        for name in names:
            path = RECIPES / f"{name}.json"
            job = json.loads(path.read_text())
            harness.train(path, self.out(name), sets={"train.max_steps": 3, "data.eval": "[]"})
            lines = lines_of(RECIPES / job["data"]["eval"][0], ROWS)
            rows = self.out(f"{name}.csv")
            rows.write_text("\n".join(lines) + "\n")
            wanted[name] = self.predicted(self.out(name), rows)
            columns[name] = served.Columns.of_job(job, lines, job["data"].get("missing", ""))
            models.append(f"--model={name}:{self.out(name)}")
        process, port, _ = self.serve(*models)
        connection = self.connect(port)
        scores = sum(self.check(connection, name, columns[name], wanted[name]) for name in names)
        self.stop(process)
        ways = "JSON, binary" + (", :predict, hdps.Client and ZeroMQ" if served.hdps else " and :predict")
        harness.figure(f"{len(names)} recipes by {ways}: {scores} scores with the bits of hdps predict")

    def test_crosses_buckets_weights_missing_and_unknown(self):
        draw = random.Random(5)

        def row(unseen):
            return ",".join(map(str, (
                draw.randrange(3), f"u{draw.randrange(9) + unseen}", draw.choice(("", "018", "35", f"a{unseen}")),
                draw.choice(("", "38.6", "1.25", "71", "0.1")), draw.choice((0.5, 1, 2)),
                "|".join(f"t{draw.randrange(7) + unseen}" for _ in range(draw.randrange(4))))))

        self.out("train.csv").write_text("".join(row(0) + "\n" for _ in range(400)))
        lines = [row(i % 3) for i in range(300)]
        self.out("rows.csv").write_text("\n".join(lines) + "\n")
        job = {"name": "crossed", "data": {
            "train": [str(self.out("train.csv"))], "columns": [
                {"name": "y", "type": "label"}, {"name": "user"}, {"name": "age"},
                {"name": "price", "type": "numeric", "transform": "standardize", "mean": 30.7, "scale": 11.3},
                {"name": "w", "type": "weight"}, {"name": "tags", "type": "multi"}],
            "features": [{"name": "range", "kind": "bucketized", "from": ["price"], "boundaries": [1, 38.6]},
                         {"name": "cross", "from": ["user", "range"]}]},
            "model": {"type": "graph", "loss": "softmax", "device": "cpu", "tables": [{"name": "t", "dim": 4}],
                      "layers": [{"name": "e", "kind": "embedding", "table": "t"},
                                 {"name": "n", "kind": "numeric"},
                                 {"name": "x", "kind": "concat", "inputs": ["e", "n"]},
                                 {"name": "logits", "inputs": ["x"], "units": 3}]},
            "train": {"batch_size": 100}}
        harness.train(harness.write_job(self.out("job.json"), job), self.out("run"))
        columns = served.Columns.of_job(job, lines, doubles=True)
        for unknown in ("initial", "zero"):
            wanted = self.predicted(self.out("run"), self.out("rows.csv"), f"--unknown={unknown}")
            process, port, _ = self.serve(f"--checkpoint={self.out('run')}", f"--unknown={unknown}")
            self.assertEqual(self.check(self.connect(port), "crossed", columns, wanted), 3 * len(lines))
            self.stop(process)

    def test_criteo(self):
        data = harness.generate(self.out("data"), rows=2048, eval_rows=256, vocabulary=300, missing=0.2, seed=3)
        harness.train(harness.write_job(self.out("job.json"), harness.reference_job(data)), self.out("run"))
        rows = [line.split("\t") for line in (data / "eval.tsv").read_text().splitlines()]
        names = [*(f"I{i}" for i in range(1, 14)), *(f"C{i}" for i in range(1, 27))]
        columns = served.Columns({name: [row[1 + i] for row in rows] for i, name in enumerate(names)}, names[:13])
        wanted = self.predicted(self.out("run"), data / "eval.tsv")
        spill = self.out("spill")
        for limit in ([], ["--memory_limit=512MiB", f"--spill_path={spill}"]):
            process, port, _ = self.serve(f"--checkpoint={self.out('run')}", *limit)
            self.check(self.connect(port), "reference_small", columns, wanted)
            mapped = pathlib.Path(f"/proc/{process.pid}/maps").read_text()
            self.assertEqual(str(spill) in mapped, bool(limit), "rows are in mapped files")
            self.stop(process)
        self.assertEqual([path for path in spill.rglob("*") if path.is_file()], [], "they are gone with the process")

    def test_formats_without_columns_are_lines(self):
        """Lines of libsvm, libffm and libfm, with labels and without."""
        draw, models, wanted, lines = random.Random(6), [], {}, {}
        forms = {"libsvm": "{i}:{v}", "libffm": "{f}:{i}:{v}", "libfm": "{i}:{v}"}
        for form, entry in forms.items():
            def row():
                entries = [entry.format(f=f, i=100 * f + draw.randrange(15), v=draw.choice((1, 0.5, 2))) for f in range(3)]
                return f"{draw.randrange(2)} " + " ".join(entries)
            (self.out(f"t.{form}")).write_text("".join(row() + "\n" for _ in range(300)))
            lines[form] = [row() for _ in range(100)]
            self.out(f"q.{form}").write_text("\n".join(lines[form]) + "\n")
            data = {"format": form, "train": [str(self.out(f"t.{form}"))],
                    **({} if form == "libsvm" else {"num_fields": 3})}
            job = harness.write_job(self.out("job.json"), {
                "name": form, "data": data, "train": {"batch_size": 100},
                "model": {"type": "wide_deep", "embedding_dim": 4, "hidden": [8], "device": "cpu"}})
            harness.train(job, self.out(form))
            wanted[form] = self.predicted(self.out(form), self.out(f"q.{form}"))
            models.append(f"{form}:{self.out(form)}")
        process, port, _ = self.serve(f"--model={','.join(models)}")
        connection = self.connect(port)
        for form in forms:
            self.check(connection, form, served.Columns({"row": lines[form]}), wanted[form])
            unlabelled = [line.split(" ", 1)[1] for line in lines[form]]
            self.check(connection, form, served.Columns({"row": unlabelled}), wanted[form])
        self.stop(process)


class Clients(served.ServeCase):
    """Clients that hdps has not written."""

    def setUp(self):
        super().setUp()
        self.columns = [{"name": "y", "type": "label"}, {"name": "user"}, {"name": "age", "type": "numeric"}]
        self.out("t.csv").write_text("".join(f"{i % 2},u{i % 5},{i % 7}\n" for i in range(64)))
        self.job = harness.write_job(self.out("job.json"), {
            "name": "clicks", "data": {"train": ["t.csv"], "columns": self.columns},
            "model": {"type": "wide_deep", "embedding_dim": 4, "hidden": [8], "device": "cpu"},
            "train": {"batch_size": 16, "epochs": 2}, "checkpoint": {"every_epochs": 1, "keep": 4}})
        harness.train(self.job, self.out("run"))
        self.rows = served.Columns({"user": ["u1", "new", ""], "age": ["1.5", "", "3"]}, ["age"])
        self.out("q.csv").write_text("u1,1.5\nnew,\n,3\n")
        self.wanted = self.predicted(self.out("run"), self.out("q.csv"), "--which=newest")

    def test_curl(self):
        process, port, token = self.serve(f"--checkpoint={self.out('run')}")
        at = f"http://127.0.0.1:{port}"
        self.assertEqual(json.loads(served.curl(f"{at}/v2")[1])["extensions"], ["binary_tensor_data"])
        for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/clicks/ready", "/healthz", "/readyz"):
            self.assertEqual(served.curl(f"{at}{path}")[0], 200, path)
        told = json.loads(served.curl(f"{at}/v2/models/clicks")[1])
        self.assertEqual((told["name"], told["versions"]), ("clicks", ["8"]))
        self.assertEqual(told["inputs"], [{"name": "user", "datatype": "BYTES", "shape": [-1]},
                                          {"name": "age", "datatype": "FP32", "shape": [-1]}])
        self.assertIn({"name": "probability", "datatype": "FP32", "shape": [-1]}, told["outputs"])
        # JSON, of the version and without; then binary, as a file behind its JSON.
        body, _ = self.rows.infer_json()
        for path in ("/v2/models/clicks/infer", "/v2/models/clicks/versions/8/infer"):
            status, answer = served.curl("--json", body.decode(), at + path)
            self.assertEqual(status, 200, answer)
            self.assertEqual(json.loads(answer)["model_version"], "8")
            self.assertEqual(served.scores_of_json(answer), self.wanted)
        body, headers = self.rows.infer_binary()
        self.out("body").write_bytes(body)
        got = self.out("got")
        harness.run(["curl", "--silent", "--fail", "--data-binary", f"@{self.out('body')}", "--dump-header", got,
                     "--output", self.out("answer"), *[f"-H{name}: {value}" for name, value in headers.items()],
                     f"{at}/v2/models/clicks/infer"])
        length = re.search(r"(?i)^inference-header-content-length: (\d+)", got.read_text(), re.M)[1]
        self.assertEqual(served.scores_of_binary(self.out("answer").read_bytes(),
                                                 {"Inference-Header-Content-Length": length}), self.wanted)
        # Errors have a status and a sentence.
        for status, part, path, *flags in (
                (404, "answers as version 8, not as 4", "/v2/models/clicks/versions/4"),
                (404, "there is no model 'click'; did you mean", "/v2/models/click"),
                (404, "there is no such path; there are: / /healthz", "/v3"),
                (405, "POST", "/v2/models/clicks/infer"),
                (400, "age", "/v2/models/clicks/infer", "--json", '{"inputs": [{"name": "age", "shape": [1], '
                                                                  '"datatype": "FP32", "data": ["x"]}]}'),
                (401, "token", "/v1/models/clicks:use", "--json", '{"version": 4}')):
            got = served.curl(*flags, at + path)
            self.assertEqual(got[0], status, got)
            self.assertIn(part, json.loads(got[1])["error"], path)
        self.use(at, token)
        self.stop(process)

    def use(self, at, token):
        """Goes back to an older version, and follows the newest again."""
        bearer = ["-H", f"Authorization: Bearer {token}"]

        def versions():
            return json.loads(served.curl(f"{at}/v2/models/clicks")[1])["versions"]

        states = json.loads(served.curl(f"{at}/v1/models/clicks")[1])["model_version_status"]
        self.assertEqual([(one["version"], one["state"]) for one in states], [("8", "AVAILABLE"), ("4", "START")])
        status, answer = served.curl(*bearer, "--json", '{"version": 4}', f"{at}/v1/models/clicks:use")
        self.assertEqual(status, 202, answer)
        harness.wait_until(lambda: versions() == ["4"], 30, "version 4")
        body, _ = self.rows.infer_json()
        older = self.predicted(self.out("run") / "checkpoint" / "step_0000000004", self.out("q.csv"))
        self.assertNotEqual(older, self.wanted)
        self.assertEqual(served.scores_of_json(served.curl("--json", body.decode(), f"{at}/v2/models/clicks/infer")[1]),
                         older)
        status, answer = served.curl(*bearer, "--json", '{"version": 5}', f"{at}/v1/models/clicks:use")
        self.assertEqual(status, 404, answer)
        self.assertEqual(served.curl(*bearer, "--json", '{"version": "newest"}', f"{at}/v1/models/clicks:use")[0], 202)
        harness.wait_until(lambda: versions() == ["8"], 30, "version 8 again")

    def test_a_newer_checkpoint_is_taken(self):
        """A run that goes on is followed; each answer names its version."""
        process, port, _ = self.serve(f"--checkpoint={self.out('run')}")
        connection = self.connect(port)
        body, _ = self.rows.infer_json()

        def answer():
            status, _, text = self.ask(connection, "/v2/models/clicks/infer", body)
            self.assertEqual(status, 200, text)
            return json.loads(text)

        self.assertEqual(answer()["model_version"], "8")
        harness.train(self.job, self.out("run"), sets={"train.epochs": 3}, extra=["--resume=changed"])
        harness.wait_until(lambda: answer()["model_version"] == "12", 30, "version 12")
        self.assertEqual(served.scores_of_json(json.dumps(answer())),
                         self.predicted(self.out("run"), self.out("q.csv"), "--which=newest"))
        self.stop(process)

    def test_triton_client(self):
        python = harness.python_with("triton_python", ["tritonclient[http]==2.73.0"])
        if python is None:
            self.skipTest("tritonclient cannot be installed here")
        process, port, _ = self.serve(f"--checkpoint={self.out('run')}")
        found = json.loads(harness.run([python, "-c", TRITON, f"127.0.0.1:{port}"]).stdout)
        self.stop(process)
        self.assertEqual(found["ready"], [True] * 4 + [False])
        self.assertEqual((found["server"], found["versions"], found["index"]), ("hdps", ["8"], ["clicks"]))
        self.assertEqual([served.floats(one) for one in found["scores"]], [self.wanted] * 2)
        self.assertIn("version 4 of the model clicks does not answer, version 8 does", found["error"])
        self.assertIn("age", found["missing"])


# What the client's own examples do.
TRITON = r"""
import json, sys
import numpy as np
import tritonclient.http as http
from tritonclient.utils import InferenceServerException
client = http.InferenceServerClient(sys.argv[1])
ready = [client.is_server_live(), client.is_server_ready(), client.is_model_ready("clicks"),
         client.is_model_ready("clicks", "8"), client.is_model_ready("clicks", "4")]
def inputs(binary):
    user = http.InferInput("user", [3], "BYTES")
    user.set_data_from_numpy(np.array([b"u1", b"new", b""], dtype=np.object_), binary_data=binary)
    age = http.InferInput("age", [3], "FP32")
    age.set_data_from_numpy(np.array([1.5, np.nan, 3] if binary else [1.5, 0, 3], dtype=np.float32), binary_data=binary)
    if not binary:
        age._data[1] = None  # JSON has no NaN.
    return [user, age]
scores = [client.infer("clicks", inputs(binary), outputs=[http.InferRequestedOutput("probability", binary_data=binary)])
          .as_numpy("probability").tolist() for binary in (False, True)]
said = []
for version, given in (("4", inputs(True)), ("", inputs(True)[:1])):
    try:
        client.infer("clicks", given, model_version=version)
    except InferenceServerException as refused:
        said.append(str(refused))
print(json.dumps({"ready": ready, "server": client.get_server_metadata()["name"], "scores": scores,
                  "versions": client.get_model_metadata("clicks")["versions"],
                  "index": [one["name"] for one in client.get_model_repository_index()],
                  "error": said[0], "missing": said[1]}))
"""


if __name__ == "__main__":
    harness.main()
