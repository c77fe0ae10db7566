"""Runs the pods of manifests as processes of this machine: their commands and variables, with addresses and paths
put in. A pod has an address of its own in 127.0.0.0/8, which stands for its own loopback, too."""
import dataclasses
import os
import pathlib
import re
import subprocess
import urllib.request

import harness
import manifest_pods

REFERENCE = re.compile(r"\$(\$|\(([A-Z0-9_]+)\))")
MADE_AGAIN_MAX = 5
FOREIGN = ("HDPS_", "MS_", "DMLC_", "OMPI_", "PMI", "SLURM_", "KUBERNETES_")


def expanded(value, env):
    """What Kubernetes makes of $(NAME) and $$ in a value."""
    return REFERENCE.sub(lambda m: "$" if m.group(1) == "$" else env.get(m.group(2), m.group(0)), value)


@dataclasses.dataclass
class Pod:
    group: manifest_pods.PodGroup
    index: int
    address: str
    folder: pathlib.Path      # Of its own volumes.
    volumes: dict             # Name of a volume to its folder here.
    process: subprocess.Popen = None
    starts: int = 0
    passed: set = dataclasses.field(default_factory=set)  # Probes that once succeeded.
    peak_bytes: int = 0

    @property
    def name(self):
        return f"{self.group.role} {self.index}"


class LocalPods:
    """The pods of `documents`. `claim` is the folder of the shared volume, `secrets` those of Secrets by name."""

    def __init__(self, documents, folder, claim, secrets, subnet):
        self.maps = {one["metadata"]["name"]: one["data"] for one in manifest_pods.of_kind(documents, "ConfigMap")}
        self.claim, self.secrets, self.folder = claim, secrets, folder
        self.pods, self.hosts = [], {}
        for group in manifest_pods.groups_of(documents):
            for index in range(group.count):
                pod = Pod(group, index, f"127.{subnet}.{len(self.pods) + 1}", folder / f"{group.role}{index}", {})
                self.pods.append(pod)
                if group.host(index):
                    self.hosts[group.host(index)] = pod.address

    def make_volumes(self, pod):
        for volume in pod.group.template["spec"]["volumes"]:
            name = volume["name"]
            at = pod.volumes[name] = pod.folder / name
            if "persistentVolumeClaim" in volume:
                pod.volumes[name] = self.claim
                continue
            at.mkdir(parents=True)
            if "configMap" in volume:
                for key, text in self.maps[volume["configMap"]["name"]].items():
                    (at / key).write_text(text)
            elif "secret" in volume:  # As the kubelet mounts one: links, and files for the group.
                secret = volume["secret"]
                (at / "..now").mkdir()
                for item in secret["items"]:
                    file = at / "..now" / item["path"]
                    file.write_bytes((self.secrets[secret["secretName"]] / item["key"]).read_bytes())
                    file.chmod(secret["defaultMode"])
                (at / "..data").symlink_to("..now")
                for item in secret["items"]:
                    (at / item["path"]).symlink_to(f"..data/{item['path']}")
                at.chmod(0o777)
            else:
                at.chmod(0o777)

    def here(self, pod, container, text):
        """A text of a container with the paths and addresses of this machine."""
        folders = {mount["mountPath"]: str(pod.volumes[mount["name"]]) for mount in container["volumeMounts"]}
        paths = "|".join(re.escape(path) for path in sorted(folders, key=len, reverse=True))
        text = re.sub(rf"(?<![\w./-])({paths})(?=/|$|[^\w.-])", lambda found: folders[found.group(1)], text)
        for host, address in self.hosts.items():
            text = text.replace(host, address)
        return re.sub(r"127\.0\.0\.1(?!\d)", pod.address, text)

    def environment(self, pod, container, told):
        env = {}
        fields = {"status.podIP": pod.address,
                  "metadata.annotations['batch.kubernetes.io/job-completion-index']": str(pod.index)}
        for one in container.get("env", []):
            if "value" in one:
                env[one["name"]] = expanded(one["value"], env)
            else:
                env[one["name"]] = fields[one["valueFrom"]["fieldRef"]["fieldPath"]]
        env = {name: self.here(pod, container, value) if name != "HDPS_SET" else value for name, value in env.items()}
        outer = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        return {**outer, "PATH": f"{harness.BIN}:{os.environ['PATH']}", **env, **told}

    def start(self, pod, told=lambda pod: {}):
        if not pod.volumes:
            self.make_volumes(pod)
        for container in pod.group.template["spec"].get("initContainers", []):
            command = [self.here(pod, container, word) for word in container["command"]]
            harness.run(command, env=self.environment(pod, container, {}))
        container = pod.group.container
        pod.starts += 1
        with open(self.folder / f"{pod.group.role}{pod.index}.log", "a") as log:
            pod.process = subprocess.Popen(
                [self.here(pod, container, word) for word in container["command"]], stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, cwd=self.here(pod, container, container["workingDir"]),
                env=self.environment(pod, container, told(pod)))

    def probe(self, pod, kind):
        """Is true if the probe would pass now."""
        its = pod.group.container[kind]
        if "exec" in its:
            command = [self.here(pod, pod.group.container, word) for word in its["exec"]["command"]]
            return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True,
                                  timeout=60).returncode == 0
        port = next(one["containerPort"] for one in pod.group.container["ports"] if one["name"] == "http")
        try:
            with urllib.request.urlopen(f"http://{pod.address}:{port}{its['httpGet']['path']}", timeout=60) as answer:
                return answer.status == 200
        except OSError:
            return False

    def look(self, pod):
        """Notes which probes pass, and the memory of the process."""
        for kind in {"startupProbe", "readinessProbe"} - pod.passed:
            if self.probe(pod, kind):
                pod.passed.add(kind)
        try:
            status = pathlib.Path(f"/proc/{pod.process.pid}/status").read_text()
            pod.peak_bytes = max(pod.peak_bytes, int(re.search(r"VmHWM:\s+(\d+)", status).group(1)) * 1024)
        except (OSError, AttributeError):
            pass  # It has just ended.

    def log_of(self, pod):
        return (self.folder / f"{pod.group.role}{pod.index}.log").read_text()[-3000:]

    def have_ended(self, told):
        """Looks at each pod once, and makes those again that must be. Is true if all have ended with 0."""
        for pod in self.pods:
            status = pod.process.poll()
            if status is None:
                self.look(pod)
            elif status == 2 or (status != 0 and pod.starts > MADE_AGAIN_MAX):
                raise AssertionError(f"{pod.name} ended with {status}\n{self.log_of(pod)}")
            elif status != 0:
                self.start(pod, told)
        return all(pod.process.poll() == 0 for pod in self.pods)

    def run(self, seconds, told=lambda pod: {}):
        """Runs all until each has ended with 0. A pod that ends otherwise is made again, but with 2 the job fails."""
        try:
            for pod in self.pods:
                self.start(pod, told)
            harness.wait_until(lambda: self.have_ended(told), seconds, "the end of all pods")
        finally:
            for pod in self.pods:
                if pod.process is not None and pod.process.poll() is None:
                    pod.process.kill()
                    print(f"{pod.name} was killed: {self.log_of(pod)}")
                if pod.process is not None:
                    pod.process.wait()
