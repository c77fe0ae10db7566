// Makes what the kinds of Kubernetes share: the pods of each role, their Jobs, and the job file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/deploy/deployment.h"
#include "tools/deploy/yaml.h"

namespace hdps {

enum class PodRole : uint8_t { kScheduler, kServer, kWorker };
inline constexpr PodRole kPodRoles[] = {PodRole::kScheduler, PodRole::kServer, PodRole::kWorker};
std::string_view NameOf(PodRole role);  // "scheduler"
uint32_t CountOf(const Deployment& deployment, PodRole role);

// How a kind places its pods.
struct PodPlace {
  std::string container = "hdps";  // Name of the member's container.
  // The name under which members find the scheduler. Empty: variables of an operator tell it, and
  // the role and the numbers of servers and workers, too.
  std::string scheduler_host;
  // Kubernetes numbers the pods of a role, and the number is the member's rank.
  bool indexed = true;
  std::string restart_policy = "Never";  // Empty: the operator sets it.
  std::string subdomain;  // Of the pods' names; empty: whoever makes the pods sets it.
  std::string port_name;  // Of the member's port; empty: that of its role.
};

inline constexpr size_t kPodNameMax = 63;  // A longer name is no host name.
// Characters at the end of a pod's name that Kubernetes draws, with their dash: "-x7x2p".
inline constexpr size_t kDrawnSuffix = 6;
// Returns the characters that the longest name of a pod has behind that of the job: a dash and the
// role, `between`, the number of the pod, and what Kubernetes draws.
size_t LongestSuffix(const Deployment& deployment, std::string_view between);

// The map "metadata" with the name, the namespace if there is one, and labels.
Yaml MetadataOf(const Deployment& deployment, const std::string& name);
// Labels of all objects of the job, and of one role.
Yaml LabelsOf(const Deployment& deployment);
Yaml LabelsOf(const Deployment& deployment, PodRole role);

// A pod's metadata and spec.
Yaml PodTemplate(const Deployment& deployment, PodRole role, const PodPlace& place);
// The spec of a Job with as many pods as the role has members. A pod that ended with 2 fails the
// Job, and one that ended otherwise but not with 0 is made again.
Yaml IndexedJob(const Deployment& deployment, PodRole role, const PodPlace& place);
// The three replicated jobs, the network and the policies of a JobSet whose workers are the
// replicated job `workers` with these labels.
Yaml JobSetSpec(const Deployment& deployment, const PodPlace& place, const std::string& workers,
                const Yaml& worker_labels);

// The ConfigMap with the job file, which cannot change while pods read it.
Yaml JobFileMap(const Deployment& deployment);

// Joins documents, with a comment above that tells what the cluster must have.
std::string PrintDocuments(const Deployment& deployment, const std::string& kind,
                           const std::vector<Yaml>& documents);

// Requests and limits of a container.
Yaml ResourcesOf(const MemberNeeds& needs);
// What a container and its pod may do: nothing as root, and no change of the image's files.
Yaml ContainerSecurity();
Yaml PodSecurity(const Deployment& deployment);

}  // namespace hdps
