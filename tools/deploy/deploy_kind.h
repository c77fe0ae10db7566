// Lists the kinds of clusters for which hdps deploy prints what starts a job there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/deploy/deployment.h"

namespace hdps {

// One kind of cluster, in a file of its own below kinds/.
struct DeployKind {
  std::string_view name;   // The word of --to.
  std::string_view help;   // What is printed, in a few words.
  bool kubernetes = true;  // It has an image, and names that Kubernetes takes.
  bool serves = false;     // It answers requests; it has no servers, workers and keys.
  uint32_t port = 8118;    // Of the scheduler, if the operator gives none.
  // Returns how many characters the longest name of a pod has behind that of the job.
  size_t (*longest_suffix)(const Deployment& deployment) = nullptr;
  std::string (*print)(const Deployment& deployment) = nullptr;
};

DeployKind JobSetKind();
DeployKind JobsKind();
DeployKind TrainJobKind();
DeployKind MsJobKind();
DeployKind KServeKind();
DeployKind SlurmKind();

// Returns all kinds, in the order of the help.
std::vector<DeployKind> DeployKinds();

}  // namespace hdps
