// Prints an MSJob of MindSpore's operator, which tells members their roles and the scheduler.
#include <utility>

#include "tools/deploy/deploy_kind.h"
#include "tools/deploy/pods.h"

namespace hdps {
namespace {

constexpr uint32_t kOperatorPort = 2222, kBackoffLimit = 1000;

const char* ReplicaName(PodRole role) {
  if (role == PodRole::kScheduler) return "Scheduler";
  return role == PodRole::kServer ? "PS" : "Worker";
}

std::string Print(const Deployment& deployment) {
  PodPlace place;
  place.container = "mindspore";
  place.indexed = false;
  place.restart_policy = "";
  place.port_name = "msjob-port";
  Yaml replicas = Yaml::Map();
  for (const PodRole role : kPodRoles) {
    replicas.Set(ReplicaName(role),
                 Yaml::Map({{"replicas", CountOf(deployment, role)},
                            {"restartPolicy", "OnFailure"},
                            {"template", PodTemplate(deployment, role, place)}}));
  }
  // The operator must not remove the scheduler before it has written its summary.
  const Yaml job =
      Yaml::Map({{"apiVersion", "mindspore.gitee.com/v1"},
                 {"kind", "MSJob"},
                 {"metadata", MetadataOf(deployment, deployment.name)},
                 {"spec", Yaml::Map({{"runPolicy", Yaml::Map({{"cleanPodPolicy", "None"},
                                                              {"backoffLimit", kBackoffLimit}})},
                                     {"successPolicy", "AllWorkers"},
                                     {"msReplicaSpecs", std::move(replicas)}})}});
  return PrintDocuments(deployment, "msjob", {JobFileMap(deployment), job});
}

}  // namespace

DeployKind MsJobKind() {
  return {
      .name = "msjob",
      .help = "an MSJob of MindSpore's operator",
      .port = kOperatorPort,
      .longest_suffix = [](const Deployment& d) { return LongestSuffix(d, "-") - kDrawnSuffix; },
      .print = Print};
}

}  // namespace hdps
