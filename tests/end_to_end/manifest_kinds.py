"""Rules of one kind of manifest each: what its controller asks for beyond the pods."""
import manifest_pods


def one(documents, kind):
    found = manifest_pods.of_kind(documents, kind)
    assert len(found) == 1, (kind, len(found))
    return found[0]


def job_set(spec):
    targets = spec["successPolicy"]["targetReplicatedJobs"]
    jobs = {job["name"]: job for job in spec["replicatedJobs"]}
    found = [f"no replicated job {target}" for target in targets if target not in jobs]
    if targets != ["scheduler"] or spec["failurePolicy"] != {"maxRestarts": 0}:
        found.append("the job's end is not that of the scheduler")
    if any(job["replicas"] != 1 for job in jobs.values()):
        found.append("replicas other than 1")
    if not spec["network"]["enableDNSHostnames"] or not spec["network"]["publishNotReadyAddresses"]:
        found.append("no names for pods that are not ready")
    return found


def jobset(documents):
    its = one(documents, "JobSet")
    return job_set(its["spec"]) + ([] if its["apiVersion"] == "jobset.x-k8s.io/v1alpha2" else ["version"])


def jobs(documents):
    one(documents, "Service")
    names = sorted(job["metadata"]["name"].rsplit("-", 1)[1] for job in manifest_pods.of_kind(documents, "Job"))
    return [] if names == ["scheduler", "server", "worker"] else [f"jobs {names}"]


def trainjob(documents):
    runtime, job = one(documents, "TrainingRuntime"), one(documents, "TrainJob")
    spec = runtime["spec"]["template"]["spec"]
    found = job_set(spec)
    reference = job["spec"]["runtimeRef"]
    if reference != {"apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime",
                     "name": runtime["metadata"]["name"]}:
        found.append(f"runtimeRef {reference}")
    trains = [each for each in spec["replicatedJobs"]
              if each["template"].get("metadata", {}).get("labels", {}).get(manifest_pods.TRAINER_LABEL) == "trainer"]
    if [each["name"] for each in trains] != ["node"]:
        return found + ["the Trainer finds no job that trains"]
    nodes = job["spec"]["trainer"]["numNodes"]
    if runtime["spec"]["mlPolicy"]["numNodes"] != nodes or trains[0]["template"]["spec"]["parallelism"] != nodes:
        found.append(f"{nodes} nodes")
    if trains[0]["template"]["spec"]["template"]["spec"]["containers"][0]["name"] != "node":
        found.append("the Trainer finds no container")
    return found


def msjob(documents):
    spec = one(documents, "MSJob")["spec"]
    found = []
    if spec["successPolicy"] != "AllWorkers" or spec["runPolicy"]["cleanPodPolicy"] != "None":
        found.append("the operator may remove the scheduler too early")
    for replica, its in spec["msReplicaSpecs"].items():
        container = its["template"]["spec"]["containers"][0]
        if its["restartPolicy"] != "OnFailure":
            found.append(f"{replica}: restartPolicy {its['restartPolicy']}")
        if container["name"] != "mindspore":
            found.append(f"{replica}: the operator finds no container")
        if "msjob-port" not in [port["name"] for port in container["ports"]]:
            found.append(f"{replica}: no port msjob-port")
        ours = manifest_pods.variables_of(container)
        found += [f"{replica}: {name} is the operator's to tell" for name in
                  ("HDPS_ROLE", "HDPS_SCHEDULER", "HDPS_SERVERS", "HDPS_WORKERS", "HDPS_RANK") if name in ours]
    return found


def kserve(documents):
    runtime, service = one(documents, "ServingRuntime"), one(documents, "InferenceService")
    model, container = service["spec"]["predictor"]["model"], runtime["spec"]["containers"][0]
    found = []
    formats = [each["name"] for each in runtime["spec"]["supportedModelFormats"]]
    if model["modelFormat"]["name"] not in formats or model["runtime"] != runtime["metadata"]["name"]:
        found.append("the service does not find its runtime")
    if model["protocolVersion"] not in runtime["spec"]["protocolVersions"]:
        found.append("the runtime does not speak the service's protocol")
    if not model["storageUri"].startswith("pvc://"):
        found.append(f"storageUri {model['storageUri']}")
    if container["name"] != "kserve-container" or "--checkpoint=/mnt/models" not in container["args"]:
        found.append("the model is mounted elsewhere")
    name = service["metadata"]["name"]
    if f"--name={name}" not in container["args"]:
        found.append("the model has another name than the service")
    port = container["ports"][0]["containerPort"]
    if f"--http=0.0.0.0:{port}" not in container["args"]:
        found.append(f"nothing listens at {port}")
    for probe, path in (("startupProbe", "live"), ("livenessProbe", "live"), ("readinessProbe", "ready")):
        if container.get(probe, {}).get("httpGet") != {"path": f"/v2/health/{path}", "port": port}:
            found.append(f"{probe} {container.get(probe)}")
    volumes = {volume["name"] for volume in runtime["spec"]["volumes"]}
    if {mount["name"] for mount in container["volumeMounts"]} != volumes:
        found.append("mounts and volumes differ")
    if not container["securityContext"]["readOnlyRootFilesystem"] or \
            not service["spec"]["predictor"]["securityContext"]["runAsNonRoot"]:
        found.append("it runs with more rights than it needs")
    return found


RULES = {"jobset": jobset, "jobs": jobs, "trainjob": trainjob, "msjob": msjob, "kserve": kserve}
