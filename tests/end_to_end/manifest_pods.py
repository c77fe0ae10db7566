"""Reads the pods out of manifests: which Kubernetes and its operators would make, under which names."""
import dataclasses

TRAINER_LABEL = "trainer.kubeflow.org/trainjob-ancestor-step"
ROLES = {"Scheduler": "scheduler", "PS": "server", "Worker": "worker"}
POD_KINDS = ("JobSet", "TrainingRuntime", "Job", "MSJob")


@dataclasses.dataclass
class PodGroup:
    """The equal pods of one role."""
    kind: str          # Of the document that they come from.
    role: str          # scheduler, server, worker
    count: int
    prefix: str        # Their names are PREFIX-INDEX, and of Jobs five drawn characters.
    subdomain: str     # Their host names are PREFIX-INDEX.SUBDOMAIN; empty: they have none.
    template: dict     # metadata and spec
    job: dict          # Spec of their Job; empty: they belong to none.

    @property
    def container(self):
        return self.template["spec"]["containers"][0]

    def host(self, index):
        return f"{self.prefix}-{index}.{self.subdomain}" if self.subdomain else ""

    def pod_names(self):
        drawn = "-x7x2p" if self.job else ""
        return [f"{self.prefix}-{index}{drawn}" for index in (0, self.count - 1)]


def of_kind(documents, kind):
    return [document for document in documents if document["kind"] == kind]


def job_set_groups(kind, name, spec, nodes=None):
    groups = []
    for job in spec["replicatedJobs"]:
        trains = TRAINER_LABEL in job["template"].get("metadata", {}).get("labels", {})
        count = nodes if nodes and trains else job["template"]["spec"]["parallelism"]
        template = job["template"]["spec"]["template"]
        role = template["metadata"]["labels"]["app.kubernetes.io/component"]
        groups.append(PodGroup(kind, role, count, f"{name}-{job['name']}-0", spec["network"]["subdomain"], template,
                               job["template"]["spec"]))
    return groups


def groups_of(documents):
    """All pods that the documents make, but for those of KServe."""
    groups = []
    for document in documents:
        kind, name, spec = document["kind"], document["metadata"]["name"], document.get("spec")
        if kind == "JobSet":
            groups += job_set_groups(kind, name, spec)
        elif kind == "TrainingRuntime":
            train = of_kind(documents, "TrainJob")[0]
            groups += job_set_groups(kind, train["metadata"]["name"], spec["template"]["spec"],
                                     train["spec"]["trainer"]["numNodes"])
        elif kind == "Job":
            template = spec["template"]
            groups.append(PodGroup(kind, template["metadata"]["labels"]["app.kubernetes.io/component"],
                                   spec["parallelism"], name, template["spec"].get("subdomain", ""), template, spec))
        elif kind == "MSJob":
            for replica, its in spec["msReplicaSpecs"].items():
                groups.append(PodGroup(kind, ROLES[replica], its["replicas"], f"{name}-{replica.lower()}", "",
                                       its["template"], {}))
    return groups


def variables_of(container):
    """Each variable's written value; of those that come from the pod their field in < >."""
    return {one["name"]: one["value"] if "value" in one else f"<{one['valueFrom']['fieldRef']['fieldPath']}>"
            for one in container.get("env", [])}
