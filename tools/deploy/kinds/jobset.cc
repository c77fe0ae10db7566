// Prints a JobSet: three replicated jobs whose pods find each other by name.
#include "tools/deploy/deploy_kind.h"
#include "tools/deploy/pods.h"

namespace hdps {
namespace {

std::string Print(const Deployment& deployment) {
  PodPlace place;
  place.scheduler_host = deployment.name + "-scheduler-0-0." + deployment.name;
  const Yaml set = Yaml::Map(
      {{"apiVersion", "jobset.x-k8s.io/v1alpha2"},
       {"kind", "JobSet"},
       {"metadata", MetadataOf(deployment, deployment.name)},
       {"spec", JobSetSpec(deployment, place, "worker", LabelsOf(deployment, PodRole::kWorker))}});
  return PrintDocuments(deployment, "jobset", {JobFileMap(deployment), set});
}

}  // namespace

DeployKind JobSetKind() {
  return {.name = "jobset",
          .help = "a JobSet of Kubernetes",
          .longest_suffix = [](const Deployment& d) { return LongestSuffix(d, "-0-"); },
          .print = Print};
}

}  // namespace hdps
