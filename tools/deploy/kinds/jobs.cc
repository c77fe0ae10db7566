// Prints three Jobs and a headless Service, for a Kubernetes cluster without JobSet.
#include "tools/deploy/deploy_kind.h"
#include "tools/deploy/pods.h"

namespace hdps {
namespace {

std::string Print(const Deployment& deployment) {
  PodPlace place;
  place.scheduler_host = deployment.name + "-scheduler-0." + deployment.name;
  place.subdomain = deployment.name;
  std::vector<Yaml> documents = {JobFileMap(deployment)};
  // It gives each pod a name, from its start on.
  documents.push_back(Yaml::Map(
      {{"apiVersion", "v1"},
       {"kind", "Service"},
       {"metadata", MetadataOf(deployment, deployment.name)},
       {"spec", Yaml::Map({{"clusterIP", "None"},
                           {"publishNotReadyAddresses", true},
                           {"selector", LabelsOf(deployment)},
                           {"ports", Yaml::List({Yaml::Map({{"name", "scheduler"},
                                                            {"port", deployment.port},
                                                            {"protocol", "TCP"}})})}})}}));
  for (const PodRole role : kPodRoles) {
    const std::string name = deployment.name + "-" + std::string(NameOf(role));
    documents.push_back(Yaml::Map({{"apiVersion", "batch/v1"},
                                   {"kind", "Job"},
                                   {"metadata", MetadataOf(deployment, name)},
                                   {"spec", IndexedJob(deployment, role, place)}}));
  }
  return PrintDocuments(deployment, "jobs", documents);
}

}  // namespace

DeployKind JobsKind() {
  return {.name = "jobs",
          .help = "three Jobs of Kubernetes and a Service, where there is no JobSet",
          .longest_suffix = [](const Deployment& d) { return LongestSuffix(d, "-"); },
          .print = Print};
}

}  // namespace hdps
