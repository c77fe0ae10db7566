"""hdps deploy: manifests of each kind keep the rules of their controllers, and their commands and variables train."""
import copy
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import unittest
import urllib.error
import urllib.request

import harness
import local_pods
import manifest_kinds
import manifest_pods
import manifest_rules

try:
    import yaml
except ImportError:
    yaml = None

KINDS = ("jobset", "jobs", "trainjob", "msjob", "kserve")
RECIPES = harness.ROOT / "examples" / "recipes"
JOBS = [harness.CENSUS, harness.ROOT / "examples" / "dlrm.json", harness.ROOT / "examples" / "deepfm.json",
        harness.ROOT / "examples" / "mindspore" / "host_device.json",
        *(RECIPES / f"{name}.json" for name in ("autoint", "bst", "dcn_v2", "din", "fm", "mmoe", "mlp", "logistic"))]
IMAGE = "registry.example/hdps:1.0"
FLAG = re.compile(r"^\s+--(\w+) \(", re.M)
KUBERNETES_VERSIONS = ("1.31", "1.37")
# Reads {"core": [...], "pods": [...], "models": {KIND: [...]}} and prints what is wrong.
JUDGE = """
import json, sys
import kubernetes_validate
from kubeflow_trainer_api import models
given, wrong = json.load(sys.stdin), []
for document in given["core"]:
    for version in given["versions"]:
        try:
            kubernetes_validate.validate(document, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            wrong.append(f"{document['kind']} {version}: {error}")
names = {"JobSet": "JobsetV1alpha2JobSet", "TrainJob": "TrainerV1alpha1TrainJob",
         "TrainingRuntime": "TrainerV1alpha1TrainingRuntime"}
for document in given["models"]:
    model = getattr(models, names[document["kind"]])
    read = model.from_dict(document)
    def lost(before, after, path):
        if isinstance(before, dict):
            for key, value in before.items():
                if not isinstance(after, dict) or key not in after:
                    wrong.append(f"{document['kind']}: {path}.{key} is no field")
                else:
                    lost(value, after[key], f"{path}.{key}")
        elif isinstance(before, list):
            for index, value in enumerate(before):
                lost(value, after[index], f"{path}[{index}]")
    lost(document, read.to_dict(), "")
print(json.dumps(wrong))
"""


def deploy(job, kind, *flags, expect=0):
    done = harness.run([harness.program("hdps"), "deploy", job, f"--to={kind}", f"--image={IMAGE}", *flags],
                       expect=expect)
    return done.stdout if expect == 0 else done.stderr


def documents_of(text):
    return list(yaml.safe_load_all(text))


def flags_of_daemons():
    return set().union(*(FLAG.findall(harness.run([harness.program(name), "--help"]).stdout)
                         for name in ("hdps-scheduler", "hdps-server", "hdps-worker")))


def has_member():
    done = harness.run([harness.program("hdps"), "member", "--help"], expect=None)
    return done.returncode == 0


def at(tree, *path):
    for key in path:
        tree = tree[key]
    return tree


@unittest.skipIf(yaml is None, "there is no python3-yaml (scripts/install_deps.sh --deploy)")
class Deploy(harness.Case):
    def problems(self, kind, documents):
        if kind == "kserve":
            return manifest_kinds.kserve(documents)
        return manifest_rules.problems(documents, self.flags) + manifest_kinds.RULES[kind](documents)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Of branches that come together: a member that leaves has these flags.
        cls.flags = flags_of_daemons()
        cls.told = {kind: [cls.manifest(job, kind) for job in JOBS] for kind in KINDS}

    @staticmethod
    def manifest(job, kind):
        """With --insecure_collective where the job wants it, which it says."""
        flags = ["--servers=2", "--workers=3"]
        command = [harness.program("hdps"), "deploy", job, f"--to={kind}", f"--image={IMAGE}", *flags]
        done = harness.run(command, expect=None)
        if done.returncode == 2 and "--insecure_collective" in done.stderr:
            return deploy(job, kind, *flags, "--insecure_collective")
        return deploy(job, kind, *flags) if done.returncode else done.stdout

    def test_rules(self):
        for kind in KINDS:
            for job, text in zip(JOBS, self.told[kind]):
                with self.subTest(kind=kind, job=job.name):
                    self.assertEqual(self.problems(kind, documents_of(text)), [])
        for flags in (["--insecure"], ["--http_secret=watch"], ["--gpus=2", "--namespace=ml"],
                      ["--port=9000", "--leave_s=60", "--data_folder=a/b", "--set=train.epochs=2"]):
            for kind in KINDS[:-1]:
                with self.subTest(kind=kind, flags=flags):
                    self.assertEqual(self.problems(kind, documents_of(deploy(harness.CENSUS, kind, *flags))), [])

    def test_the_job_file_is_carried_as_it_is(self):
        for kind in KINDS[:-1]:
            for job, text in zip(JOBS, self.told[kind]):
                told = manifest_pods.of_kind(documents_of(text), "ConfigMap")[0]
                self.assertEqual(told["data"]["job.json"], job.read_text(), job)
        value = "data.train=[\"$(POD_IP)\"],name=\"a: # b\""
        env = manifest_pods.variables_of(manifest_pods.groups_of(documents_of(
            deploy(harness.CENSUS, "jobs", f"--set={value}")))[0].container)
        self.assertEqual(local_pods.expanded(env["HDPS_SET"], {"POD_IP": "1.2.3.4"}), value)

    def test_rules_notice(self):
        """Each sabotage of a good manifest is noticed by the rule that is there for it."""
        pod = ("spec", "replicatedJobs", 1, "template", "spec", "template")
        spec, box = (*pod, "spec"), (*pod, "spec", "containers", 0)

        def put(path, value):
            def change(documents):
                at(documents[1], *path[:-1])[path[-1]] = value
            return change

        def drop(path):
            def change(documents):
                del at(documents[1], *path[:-1])[path[-1]]
            return change

        def env(name, value):
            def change(documents):
                one = next(v for v in at(documents[1], *box)["env"] if v["name"] == name)
                one["value"] = value
            return change

        job = ("spec", "replicatedJobs", 1, "template", "spec")
        planted = {
            "names: ": [put((*box, "name"), "Hdps"), put((*box, "ports", 0, "name"), "a-name-of-16-cha"),
                        put(("metadata", "name"), "a" * 60)],
            "labels: ": [put((*pod, "metadata", "labels", "a b"), "c"), put(("metadata", "labels", "a"), "b c")],
            "volumes: ": [drop((*spec, "volumes", 1)), drop((*box, "volumeMounts", 1)),
                          put((*box, "volumeMounts", 1, "mountPath"), "/tmp"), put((*spec, "volumes", 0, "configMap",
                                                                                    "name"), "other"),
                          env("HDPS_JOB", "/etc/hdps/other.json")],
            "variables: ": [env("HDPS_LISTEN", "tcp://$(POD_NAME):8119"), put((*box, "env", 2, "name"), "HDPS_ROLE"),
                            put((*box, "env", 2, "name"), "HDPS_JOBB"), put((*box, "env", 3, "value"), 3)],
            "ports: ": [drop((*box, "ports", 0)), env("HDPS_SCHEDULER", "tcp://census-scheduler-0-0.other:8118"),
                        drop((*box, "ports", 1)), put((*box, "ports", 0, "containerPort"), 80)],
            "probes: ": [drop((*box, "readinessProbe")), env("HDPS_HTTP", "127.0.0.1:8100"),
                         put((*box, "livenessProbe", "periodSeconds"), 0)],
            "security: ": [put((*box, "securityContext", "readOnlyRootFilesystem"), False),
                           put((*spec, "securityContext", "runAsUser"), 0), put((*spec, "enableServiceLinks"), True)],
            "secrets: ": [put((*spec, "volumes", 4, "emptyDir"), {}), put((*spec, "volumes", 5, "secret", "items"),
                                                                          [{"key": "admin.key", "path": "a"}]),
                          put((*box, "volumeMounts", 4, "name"), "keys-secret"),
                          put((*spec, "initContainers", 0, "command"), ["sh", "-c", "true"])],
            "resources: ": [put((*box, "resources", "requests", "memory"), "99999Mi"),
                            put((*box, "resources", "limits", "cpu"), "99"), env("HDPS_THREADS", "99")],
            "counts: ": [env("HDPS_WORKERS", "4"), env("HDPS_ROLE", "worker"), put((*job, "parallelism"), 5)],
            "ends: ": [put((*spec, "terminationGracePeriodSeconds"), 25), put((*job, "backoffLimit"), 6),
                       put((*job, "podFailurePolicy", "rules", 0, "onExitCodes", "values"), [3]),
                       put((*spec, "restartPolicy"), "OnFailure"), put((*job, "completions"), 1)],
            "no replicated job": [put(("spec", "successPolicy", "targetReplicatedJobs"), ["leader"])],
            "replicas other": [put((*job[:-2], "replicas"), 2)],
        }
        good = documents_of(self.told["jobset"][0])
        for rule, changes in planted.items():
            for number, change in enumerate(changes):
                documents = copy.deepcopy(good)
                change(documents)
                with self.subTest(rule=rule, number=number):
                    found = self.problems("jobset", documents)
                    self.assertTrue(any(one.startswith(rule) for one in found), found)

    def test_rules_of_kinds_notice(self):
        planted = {
            "jobs": [("Service", ("spec", "selector", "app.kubernetes.io/instance"), "other"),
                     ("Service", ("spec", "clusterIP"), ""), ("Service", ("metadata", "name"), "other")],
            "trainjob": [("TrainJob", ("spec", "runtimeRef", "name"), "other"),
                         ("TrainJob", ("spec", "trainer", "numNodes"), 4),
                         ("TrainingRuntime", ("spec", "template", "spec", "replicatedJobs", 2, "template", "metadata",
                                              "labels"), {})],
            "msjob": [("MSJob", ("spec", "runPolicy", "cleanPodPolicy"), "All"),
                      ("MSJob", ("spec", "msReplicaSpecs", "PS", "template", "spec", "containers", 0, "name"), "a"),
                      ("MSJob", ("spec", "msReplicaSpecs", "Worker", "template", "spec", "containers", 0, "ports", 0,
                                 "name"), "a")],
            "kserve": [("InferenceService", ("spec", "predictor", "model", "runtime"), "other"),
                       ("ServingRuntime", ("spec", "containers", 0, "name"), "hdps"),
                       ("ServingRuntime", ("spec", "containers", 0, "ports", 0, "containerPort"), 80)],
        }
        for kind, changes in planted.items():
            for which, path, value in changes:
                documents = documents_of(self.told[kind][0])
                at(manifest_pods.of_kind(documents, which)[0], *path[:-1])[path[-1]] = value
                with self.subTest(kind=kind, path=path):
                    self.assertNotEqual(self.problems(kind, documents), [])

    def test_judges_from_outside(self):
        python = harness.python_with("deploy_python", ["kubernetes-validate==1.37.0", "kubeflow-trainer-api==2.3.0"])
        if python is None:
            self.skipTest("kubernetes-validate and kubeflow-trainer-api cannot be installed here")
        given = {"core": [], "models": [], "versions": KUBERNETES_VERSIONS}
        for kind in KINDS:
            for text in self.told[kind]:
                documents = documents_of(text)
                given["core"] += [one for one in documents if one["kind"] in ("ConfigMap", "Service", "Job")]
                given["models"] += [one for one in documents if one["kind"] in ("JobSet", "TrainJob", "TrainingRuntime")]
                # The pods of what has no schema there; the operator sets the restartPolicy of MSJob's.
                for group in manifest_pods.groups_of(documents):
                    spec = {"restartPolicy": "OnFailure", **group.template["spec"]}
                    given["core"].append({"apiVersion": "v1", "kind": "Pod", "spec": spec,
                                          "metadata": {"name": group.prefix, **group.template["metadata"]}})
        given["core"] = list({json.dumps(one, sort_keys=True): one for one in given["core"]}.values())
        judge = lambda what: json.loads(harness.run([python, "-c", JUDGE], input=json.dumps(what)).stdout)
        self.assertEqual(judge(given), [])
        harness.figure(f"{len(given['core'])} objects and {len(given['models'])} custom ones have no unknown field")
        broken = copy.deepcopy(given)
        broken["core"], broken["models"] = broken["core"][-1:], broken["models"][-1:]
        broken["core"][0]["spec"]["containerz"] = []
        broken["models"][0]["spec"]["numNodes"] = 1
        self.assertEqual(len(judge(broken)), 1 + len(KUBERNETES_VERSIONS))

    def test_mistakes(self):
        for flags, said in (
                (["--to=swarm"], "--to=swarm: expected one of jobset"), (["--to="], "--to is missing"),
                (["--image="], "the image has no name"), (["--image=Hdps"], "--image=Hdps: expected"),
                (["--name=a_b"], "--name=a_b: Kubernetes takes names"), (["--name=" + "a" * 44], "at most 43"),
                (["--servers=0"], "a job needs at least one of each"), (["--port=80"], "--port=80 is out of range; give 1025"),
                (["--server_memory=8GB"], "--server_memory=8GB: expected bytes as Kubernetes writes them"),
                (["--worker_memory=1Mi"], "--worker_memory=1Mi: a member needs at least 64Mi"),
                (["--keys_secret="], "or --insecure"), (["--insecure", "--keys_secret=a"], "jobs without keys"),
                (["--out=/data/x"], "--out=/data/x: expected a folder of the volume"), (["--gpus=-2"], "--gpus=-2"),
                (["--set=model.device=cuda", "--gpus=0"], "each worker needs one"), (["--leave_s=0"], "--leave_s=0"),
                (["--set=train.batch_size=1", "--workers=2"], "train.batch_size"), (["two"], "one job file too many"),
                (["--rows=many"], "--rows=many: expected a number"), (["--namespace=A"], "--namespace=A: "),
                (["--claim=a/b"], "--claim=a/b: "), (["--uid=0"], "--uid=0 is out of range"),
                (["--set=parallel.dense_exchange=allreduce"], "--insecure_collective")):
            with self.subTest(flags=flags):
                told = deploy(harness.CENSUS, "jobset", *flags, expect=2)
                self.assertIn(said, told)
        self.assertIn("none.json", deploy(self.out("none.json"), "jobs", expect=2))
        told = harness.run([harness.program("hdps"), "deploy", harness.CENSUS, "--to=jobs", f"--image={IMAGE}",
                            '--set=data.train=["/home/me/clicks.csv"]'])
        self.assertIn("/home/me/clicks.csv is not on the volume", told.stderr)


@unittest.skipIf(yaml is None, "there is no python3-yaml (scripts/install_deps.sh --deploy)")
class Pods(harness.Case):
    """The pods as processes."""
    SETS = {"train.epochs": 4, "train.batch_size": 128}
    SERVERS, WORKERS = 2, 2

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not has_member():
            raise unittest.SkipTest("this build has no hdps member")

    def setUp(self):
        super().setUp()
        self.claim = self.out("volume")
        (self.claim / "census").mkdir(parents=True)
        for name in ("adult.data.gz", "adult.test.gz"):
            shutil.copy(harness.CENSUS.parent / name, self.claim / "census")
        # Nobody else's: the pods of this process.
        self.subnet = f"{os.getpid() % 200 + 20}.{os.getpid() // 200 % 200 + 20}"

    def trained(self, kind, *flags, secrets=None, told=lambda pod: {}):
        """Runs the pods that the manifest makes; returns the digest."""
        documents = documents_of(deploy(
            harness.CENSUS, kind, f"--servers={self.SERVERS}", f"--workers={self.WORKERS}", "--data_folder=census",
            "--server_cores=1", "--worker_cores=1", *harness.merged_settings(self.SETS), *flags))
        pods = local_pods.LocalPods(documents, self.out("pods"), self.claim, secrets or {}, self.subnet)
        pods.run(240, told)
        for pod in pods.pods:
            with self.subTest(pod=pod.name):
                self.assertEqual(pod.passed, {"startupProbe", "readinessProbe"}, pods.log_of(pod))
                limit = manifest_rules.mebibytes(pod.group.container["resources"]["limits"]["memory"]) << 20
                self.assertGreater(pod.peak_bytes, 0)
                self.assertLess(pod.peak_bytes, limit)
        most = {pod.group.role: pod.peak_bytes >> 20 for pod in pods.pods}
        harness.figure(f"{kind}: MiB at most {most}")
        return harness.summary_of(self.claim / "out" / "census")["digest"]

    @classmethod
    def local_digest(cls):
        if not hasattr(cls, "digest"):
            with harness.tempfile.TemporaryDirectory(prefix="hdps_test_") as folder:
                cls.digest = harness.cluster(harness.CENSUS, folder, cls.SERVERS, cls.WORKERS, cls.SETS)["digest"]
        return cls.digest

    def keys(self):
        harness.run([harness.program("hdps"), "keygen", f"--out={self.out('keys')}"])
        return {"hdps-keys": self.out("keys")}

    def test_jobset(self):
        self.assertEqual(self.trained("jobset", secrets=self.keys()), self.local_digest())

    def test_jobs(self):
        self.assertEqual(self.trained("jobs", "--insecure"), self.local_digest())

    def test_trainjob(self):
        self.assertEqual(self.trained("trainjob", "--insecure"), self.local_digest())

    def test_msjob(self):
        """The operator's own variables tell each member what it is."""
        roles = {"scheduler": "MS_SCHED", "server": "MS_PSERVER", "worker": "MS_WORKER"}

        def told(pod):
            subnet = pod.address.rsplit(".", 1)[0]
            return {"MS_ROLE": roles[pod.group.role], "MS_SCHED_HOST": f"{subnet}.1", "MS_SCHED_PORT": "2222",
                    "MS_SERVER_NUM": str(self.SERVERS), "MS_WORKER_NUM": str(self.WORKERS),
                    "MS_NODE_ID": f"{pod.group.prefix}-{pod.index}"}
        self.assertEqual(self.trained("msjob", secrets=self.keys(), told=told), self.local_digest())


@unittest.skipIf(yaml is None, "there is no python3-yaml (scripts/install_deps.sh --deploy)")
class Serving(harness.DaemonsCase):
    def test_kserve(self):
        """The runtime's container answers a request that comes through a gateway."""
        model = self.out("models")
        harness.train(harness.CENSUS, model, sets={"train.epochs": 1, "train.max_steps": 20})
        runtime, service = documents_of(deploy(harness.CENSUS, "kserve"))
        container = runtime["spec"]["containers"][0]
        port = harness.free_port()
        words = [word.replace("/mnt/models", str(model)).replace("0.0.0.0:8080", f"0.0.0.0:{port}")
                 for word in [*container["command"], *container["args"]]]
        process = self.start_command(harness.program(words[0]), *words[1:])
        name = service["metadata"]["name"]

        def ask(path, body=None):
            request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=body, headers={
                "Host": f"{name}.ml.example", "Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.read()

        def ready():
            self.assertIsNone(process.poll(), "hdps serve has ended")
            try:
                ask(container["readinessProbe"]["httpGet"]["path"])
                return True
            except (urllib.error.URLError, socket.error):
                return False
        harness.wait_until(ready, 120, "the answer to the readiness probe")
        ask(container["livenessProbe"]["httpGet"]["path"])
        row = {"age": 30, "workclass": "Private"}
        columns = {one["name"] for one in json.loads(ask(f"/v2/models/{name}"))["inputs"]}
        asked = {column: row.get(column) for column in columns}
        told = json.loads(ask(f"/v1/models/{name}:predict", json.dumps({"instances": [asked]}).encode()))
        self.assertEqual(len(told["predictions"]), 1)


if __name__ == "__main__":
    harness.main()
