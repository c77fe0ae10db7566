"""Rules that manifests of hdps keep, each a function that tells what breaks it. None needs a cluster."""
import re

import manifest_pods

LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
SERVICE_NAME = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
SUBDOMAIN = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
PORT_NAME = re.compile(r"(?=.*[a-z])(?!.*--)[a-z0-9]([a-z0-9-]{0,13}[a-z0-9])?")
LABEL_KEY = re.compile(r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
QUANTITY = re.compile(r"([0-9]+)(Mi|Gi)?")
FIELDS = {"status.podIP", "metadata.annotations['batch.kubernetes.io/job-completion-index']"}
REFERENCE = re.compile(r"(?<!\$)\$\(([A-Z0-9_]+)\)")
MEMBER_WORDS = {"ROLE", "RESTART"}  # Flags of hdps member, which no daemon has.


def named(pattern, value, what):
    return [] if isinstance(value, str) and pattern.fullmatch(value) else [f"{what} '{value}' is no name"]


def each_container(group):
    spec = group.template["spec"]
    return [*spec.get("initContainers", []), *spec["containers"]]


def names(documents, groups):
    found = []
    for document in documents:
        found += named(SERVICE_NAME, document["metadata"]["name"], document["kind"])
    for group in groups:
        for pod in group.pod_names():
            found += named(LABEL, pod, "pod")
        for container in each_container(group):
            found += named(LABEL, container["name"], "container")
            for port in container.get("ports", []):
                found += named(PORT_NAME, port["name"], "port")
        for volume in group.template["spec"]["volumes"]:
            found += named(LABEL, volume["name"], "volume")
    return found


def labels(documents, groups):
    maps = [document["metadata"]["labels"] for document in documents]
    maps += [group.template["metadata"]["labels"] for group in groups]
    found = []
    for one in maps:
        for key, value in one.items():
            if not LABEL_KEY.fullmatch(key) or not isinstance(value, str) or not LABEL_VALUE.fullmatch(value):
                found.append(f"label {key}: {value}")
    return found


def selectors(documents, groups):
    found = []
    for service in manifest_pods.of_kind(documents, "Service"):
        wanted = service["spec"]["selector"].items()
        name = service["metadata"]["name"]
        found += [f"service {name} does not select {group.prefix}" for group in groups
                  if not wanted <= group.template["metadata"]["labels"].items()]
        found += [f"pods {group.prefix} are not in the domain of service {name}" for group in groups
                  if group.subdomain != name]
        if service["spec"]["clusterIP"] != "None" or not service["spec"]["publishNotReadyAddresses"]:
            found.append(f"service {name} gives no names to pods that are not ready")
    return found


def volumes(documents, groups):
    found = []
    maps = {one["metadata"]["name"]: one for one in manifest_pods.of_kind(documents, "ConfigMap")}
    for group in groups:
        there = {volume["name"]: volume for volume in group.template["spec"]["volumes"]}
        used = set()
        for container in each_container(group):
            paths = [mount["mountPath"] for mount in container["volumeMounts"]]
            if len(set(paths)) < len(paths) or not all(path.startswith("/") for path in paths):
                found.append(f"{group.role}: mount paths {paths}")
            for mount in container["volumeMounts"]:
                used.add(mount["name"])
                if mount["name"] not in there:
                    found.append(f"{group.role}: no volume for the mount {mount['name']}")
        found += [f"{group.role}: nothing mounts the volume {name}" for name in there.keys() - used]
        for volume in there.values():
            named_map = volume.get("configMap", {}).get("name")
            if named_map and named_map not in maps:
                found.append(f"{group.role}: no ConfigMap {named_map}")
        job = next((m["mountPath"] for m in group.container["volumeMounts"] if m["name"] == "job"), None)
        wanted = manifest_pods.variables_of(group.container)["HDPS_JOB"]
        if not any(f"{job}/{key}" == wanted for one in maps.values() for key in one["data"]):
            found.append(f"{group.role}: HDPS_JOB={wanted} is in no ConfigMap")
    return found


def variables(documents, groups, flags):
    found = []
    for group in groups:
        seen = set()
        for one in group.container["env"]:
            name = one["name"]
            if name in seen:
                found.append(f"{group.role}: {name} twice")
            field = one.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
            if field is not None and field not in FIELDS:
                found.append(f"{group.role}: {name} from {field}")
            if field is None and not isinstance(one.get("value"), str):
                found.append(f"{group.role}: {name} is no text")
            for wanted in REFERENCE.findall(one.get("value") or ""):
                if wanted not in seen:
                    found.append(f"{group.role}: {name} names {wanted}, which does not stand before it")
            seen.add(name)
            word = name.removeprefix("HDPS_")
            if word != name and word not in MEMBER_WORDS and word.lower() not in flags:
                found.append(f"{group.role}: {name} is no flag")
    return found


def ports(documents, groups):
    found = []
    scheduler = next(group for group in groups if group.role == "scheduler")
    for group in groups:
        env = manifest_pods.variables_of(group.container)
        numbers = [port["containerPort"] for port in group.container["ports"]]
        if len(set(numbers)) < len(numbers) or not all(1024 < number < 65536 for number in numbers):
            found.append(f"{group.role}: ports {numbers}")
        listens = [env[name].rsplit(":", 1)[1] for name in ("HDPS_LISTEN", "HDPS_HTTP") if name in env]
        found += [f"{group.role}: port {port} is not declared" for port in listens if int(port) not in numbers]
        if group.role == "server" and "HDPS_KEYS" in env and int(listens[0]) + 1 not in numbers:
            found.append("server: the port of encrypted rows is not declared")
        address = env.get("HDPS_SCHEDULER")
        theirs = manifest_pods.variables_of(scheduler.container).get("HDPS_LISTEN", ":")
        if address is not None and address != f"tcp://{scheduler.host(0)}:{theirs.rsplit(':', 1)[1]}":
            found.append(f"{group.role}: the scheduler does not listen at {address}")
    return found


def probes(documents, groups):
    found = []
    for group in groups:
        env = manifest_pods.variables_of(group.container)
        host, port = env["HDPS_HTTP"].split(":")
        declared = {one["name"]: one["containerPort"] for one in group.container["ports"]}
        for name, path in (("startupProbe", "/healthz"), ("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
            probe = group.container.get(name, {})
            asked = probe.get("httpGet")
            if asked:
                wanted = {"path": path, "port": "http", "scheme": "HTTPS" if "HDPS_HTTP_CERT" in env else "HTTP"}
                good = asked == wanted and declared["http"] == int(port) and host == "$(POD_IP)"
            else:
                script = " ".join(probe.get("exec", {}).get("command", []))
                good = f"/dev/tcp/127.0.0.1/{port} " in script and f"GET {path} " in script and host == "127.0.0.1"
            if not good or not all(probe[key] > 0 for key in ("periodSeconds", "timeoutSeconds", "failureThreshold")):
                found.append(f"{group.role}: {name} {probe}")
    return found


def security(documents, groups):
    found = []
    for group in groups:
        pod = group.template["spec"]["securityContext"]
        if not pod["runAsNonRoot"] or not pod["runAsUser"] > 0 or pod["fsGroup"] != pod["runAsGroup"]:
            found.append(f"{group.role}: pod {pod}")
        if group.template["spec"]["enableServiceLinks"] is not False:
            found.append(f"{group.role}: variables of services would be flags")
        for container in each_container(group):
            its = container["securityContext"]
            if not its["readOnlyRootFilesystem"] or its["allowPrivilegeEscalation"] or \
                    its["capabilities"] != {"drop": ["ALL"]}:
                found.append(f"{group.role}: container {its}")
        if "/tmp" not in [mount["mountPath"] for mount in group.container["volumeMounts"]]:
            found.append(f"{group.role}: /tmp cannot be written")
    return found


def secrets(documents, groups):
    """Members see copies in memory, and of the keys those of their role alone."""
    found = []
    for group in groups:
        spec, env = group.template["spec"], manifest_pods.variables_of(group.container)
        there = {volume["name"]: volume for volume in spec["volumes"]}
        mounts = {mount["name"]: mount for mount in group.container["volumeMounts"]}
        found += [f"{group.role}: sees the Secret {name} itself" for name in mounts if "secret" in there.get(name, {})]
        files = [env[name] for name in ("HDPS_KEYS", "HDPS_HTTP_TOKEN_FILE", "HDPS_HTTP_KEY") if name in env]
        if not files:
            continue
        memory = there.get("keys", {}).get("emptyDir", {}).get("medium")
        if memory != "Memory" or not all(one.startswith(mounts["keys"]["mountPath"] + "/") for one in files):
            found.append(f"{group.role}: keys are not in memory")
        script = spec["initContainers"][0]["command"][-1]
        found += [f"{group.role}: nothing copies into {folder}" for folder in {one.rsplit("/", 1)[0] for one in files}
                  if "HDPS_KEYS" not in env and f"install -m 0600 -t {folder} " not in script]
        if "HDPS_KEYS" in env:
            if f"install -d -m 0700 {env['HDPS_KEYS']} && install -m 0600 -t {env['HDPS_KEYS']} " not in script:
                found.append(f"{group.role}: nothing copies the keys")
            keys = [item["key"] for item in there["keys-secret"]["secret"]["items"]]
            if keys != ["allowed", f"{group.role}.key"]:
                found.append(f"{group.role}: has the keys {keys}")
    return found


def mebibytes(text):
    number, unit = QUANTITY.fullmatch(text).groups()
    return int(number) * {"Mi": 1, "Gi": 1024, None: 0}[unit]


def resources(documents, groups):
    found = []
    for group in groups:
        for container in each_container(group):
            requests, limits = container["resources"]["requests"], container["resources"]["limits"]
            if not 0 < mebibytes(requests["memory"]) <= mebibytes(limits["memory"]):
                found.append(f"{group.role}: memory {requests} {limits}")
            rest = [{k: v for k, v in one.items() if k != "memory"} for one in (requests, limits)]
            if rest[0] != rest[1] or not int(rest[0]["cpu"]) > 0:
                found.append(f"{group.role}: {rest}")
        threads = manifest_pods.variables_of(group.container).get("HDPS_THREADS")
        if threads is not None and threads != group.container["resources"]["limits"]["cpu"]:
            found.append(f"{group.role}: {threads} threads")
    return found


def counts(documents, groups):
    found = []
    size = {group.role: group.count for group in groups}
    if set(size) != {"scheduler", "server", "worker"} or size["scheduler"] != 1:
        found.append(f"roles {size}")
    for group in groups:
        env = manifest_pods.variables_of(group.container)
        for variable, role in (("HDPS_SERVERS", "server"), ("HDPS_WORKERS", "worker")):
            if variable in env and env[variable] != str(size.get(role)):
                found.append(f"{group.role}: {variable}={env[variable]}")
        if env.get("HDPS_ROLE", group.role) != group.role:
            found.append(f"{group.role}: HDPS_ROLE={env['HDPS_ROLE']}")
    return found


def ends(documents, groups):
    """Which end of a pod means what."""
    found = []
    for group in groups:
        env, spec, job = manifest_pods.variables_of(group.container), group.template["spec"], group.job
        if env["HDPS_ON_TERM"] != "leave" or spec["terminationGracePeriodSeconds"] <= int(env["HDPS_LEAVE_S"]):
            found.append(f"{group.role}: it is killed before it has left")
        if not job:
            continue
        rules = [(rule["action"], rule.get("onExitCodes", {}).get("values"),
                  [one["type"] for one in rule.get("onPodConditions", [])]) for rule in job["podFailurePolicy"]["rules"]]
        if rules != [("FailJob", [2], []), ("Ignore", None, ["DisruptionTarget"])]:
            found.append(f"{group.role}: {rules}")
        container = job["podFailurePolicy"]["rules"][0]["onExitCodes"]["containerName"]
        if container != group.container["name"]:
            found.append(f"{group.role}: no container {container}")
        if spec["restartPolicy"] != "Never" or job["backoffLimit"] != 1000 or job["completionMode"] != "Indexed":
            found.append(f"{group.role}: its Job does not make pods again")
        if job["completions"] != job["parallelism"]:
            found.append(f"{group.role}: {job['completions']} completions of {job['parallelism']}")
    return found


RULES = (names, labels, selectors, volumes, ports, probes, security, secrets, resources, counts, ends)


def problems(documents, flags):
    """What breaks the rules, "rule: what" each."""
    groups = manifest_pods.groups_of(documents)
    found = [f"{rule.__name__}: {one}" for rule in RULES for one in rule(documents, groups)]
    return found + [f"variables: {one}" for one in variables(documents, groups, flags)]
