// Prints a TrainJob of Kubeflow's Trainer and the TrainingRuntime that it runs in.
#include "tools/deploy/deploy_kind.h"
#include "tools/deploy/pods.h"

namespace hdps {
namespace {

constexpr const char* kVersion = "trainer.kubeflow.org/v1alpha1";
constexpr const char* kTrainer = "node";  // The Trainer's name of what trains, and its container's.

std::string Print(const Deployment& deployment) {
  PodPlace place;
  place.container = kTrainer;
  place.scheduler_host = deployment.name + "-scheduler-0-0." + deployment.name;
  Yaml labels = LabelsOf(deployment, PodRole::kWorker);
  labels.Set("trainer.kubeflow.org/trainjob-ancestor-step", "trainer");
  const Yaml job_set = JobSetSpec(deployment, place, kTrainer, labels);
  const Yaml runtime =
      Yaml::Map({{"apiVersion", kVersion},
                 {"kind", "TrainingRuntime"},
                 {"metadata", MetadataOf(deployment, deployment.name)},
                 {"spec", Yaml::Map({{"mlPolicy", Yaml::Map({{"numNodes", deployment.workers}})},
                                     {"template", Yaml::Map({{"spec", job_set}})}})}});
  const Yaml job = Yaml::Map(
      {{"apiVersion", kVersion},
       {"kind", "TrainJob"},
       {"metadata", MetadataOf(deployment, deployment.name)},
       {"spec", Yaml::Map({{"runtimeRef", Yaml::Map({{"apiGroup", "trainer.kubeflow.org"},
                                                     {"kind", "TrainingRuntime"},
                                                     {"name", deployment.name}})},
                           {"trainer", Yaml::Map({{"numNodes", deployment.workers}})}})}});
  return PrintDocuments(deployment, "trainjob", {JobFileMap(deployment), runtime, job});
}

}  // namespace

DeployKind TrainJobKind() {
  return {.name = "trainjob",
          .help = "a TrainJob of Kubeflow and its TrainingRuntime",
          .longest_suffix = [](const Deployment& d) { return LongestSuffix(d, "-0-"); },
          .print = Print};
}

}  // namespace hdps
