// Checks names and their lengths, ports, keys and volumes against what a kind of cluster takes.
#include "tools/deploy/check_deployment.h"

#include <string>

#include "tools/deploy/checks.h"
#include "tools/deploy/pods.h"

namespace hdps {
namespace {

Status Mistake(const std::string& message) { return Status(Code::kInvalidArgument, message); }

Status CheckRange(const std::string& flag, uint32_t value, uint32_t least, uint32_t most) {
  if (value >= least && value <= most) return {};
  return Mistake(flag + "=" + std::to_string(value) + " is out of range; give " +
                 std::to_string(least) + " to " + std::to_string(most));
}

Status CheckNameLength(const DeployKind& kind, const Deployment& d) {
  const size_t suffix = kind.longest_suffix(d);
  if (d.name.size() + suffix <= kPodNameMax) return {};
  return Mistake("--name=" + d.name + ": the longest name of a pod would have " +
                 std::to_string(d.name.size() + suffix) + " characters, and Kubernetes takes " +
                 std::to_string(kPodNameMax) + "; give a name of at most " +
                 std::to_string(kPodNameMax - suffix));
}

// Pods listen where others reach them, so they need keys, or the word that they need none.
Status CheckKeys(const Deployment& d) {
  if (d.insecure && !d.keys_secret.empty()) {
    return Mistake("--insecure is for jobs without keys; give --keys_secret=" + d.keys_secret +
                   " alone");
  }
  if (!d.insecure && d.keys_secret.empty()) {
    return Mistake(
        "--keys_secret is empty: pods listen where others reach them; give the name of a Secret "
        "with the job's keys, or --insecure if whoever is on that network may read and change the "
        "model");
  }
  if (!d.keys_secret.empty()) {
    HDPS_RETURN_IF_ERROR(CheckSubdomainName("--keys_secret", d.keys_secret));
  }
  if (!d.http_secret.empty()) {
    HDPS_RETURN_IF_ERROR(CheckSubdomainName("--http_secret", d.http_secret));
  }
  if (d.allreduce && !d.insecure && !d.insecure_collective) {
    return Mistake(
        "parallel.dense_exchange is allreduce: workers of different pods exchange gradients by "
        "Gloo "
        "or NCCL, which know no keys; give --insecure_collective to allow that, or "
        "--set=parallel.dense_exchange=servers");
  }
  if (d.insecure_collective && !d.allreduce) {
    return Mistake(
        "--insecure_collective: workers of this job exchange nothing with each other; leave it out "
        "or set parallel.dense_exchange to allreduce");
  }
  return {};
}

Status CheckOnKubernetes(const DeployKind& kind, const Deployment& d) {
  HDPS_RETURN_IF_ERROR(CheckImage("--image", d.image));
  HDPS_RETURN_IF_ERROR(CheckObjectName("--name", d.name));
  HDPS_RETURN_IF_ERROR(CheckNameLength(kind, d));
  if (!d.name_space.empty()) {
    HDPS_RETURN_IF_ERROR(CheckObjectName("--namespace", d.name_space));
  }
  HDPS_RETURN_IF_ERROR(CheckSubdomainName("--claim", d.claim));
  HDPS_RETURN_IF_ERROR(CheckVolumePath("--out", d.out));
  HDPS_RETURN_IF_ERROR(CheckVolumePath("--data_folder", d.data_folder));
  // A user who is not root listens at no port below 1024; the ports beside it are used too.
  constexpr uint32_t kPortMin = 1025, kPortMax = 65533, kUidMax = 2147483647;
  HDPS_RETURN_IF_ERROR(CheckRange("--port", d.port, kPortMin, kPortMax));
  HDPS_RETURN_IF_ERROR(CheckRange("--uid", d.uid, 1, kUidMax));
  if (kind.serves) return {};
  constexpr size_t kMapBytesMax = (1 << 20) - (1 << 10);  // Of a ConfigMap with its own fields.
  if (d.job_text.size() > kMapBytesMax) {
    return Mistake(d.job_path + ": the job file has " + std::to_string(d.job_text.size()) +
                   " bytes, and a ConfigMap holds " + std::to_string(kMapBytesMax) +
                   "; shorten it");
  }
  return CheckKeys(d);
}

}  // namespace

Status CheckDeployment(const DeployKind& kind, const Deployment& deployment) {
  constexpr uint32_t kMembersMax = 100'000, kLeaveMax = 3600, kCoresMax = 1024, kGpusMax = 64;
  HDPS_RETURN_IF_ERROR(CheckRange("--servers", deployment.servers, 1, kMembersMax));
  HDPS_RETURN_IF_ERROR(CheckRange("--workers", deployment.workers, 1, kMembersMax));
  HDPS_RETURN_IF_ERROR(CheckRange("--leave_s", deployment.leave_s, 1, kLeaveMax));
  HDPS_RETURN_IF_ERROR(CheckRange("--server_cores", deployment.server.cores, 1, kCoresMax));
  HDPS_RETURN_IF_ERROR(CheckRange("--worker_cores", deployment.worker.cores, 1, kCoresMax));
  HDPS_RETURN_IF_ERROR(CheckRange("--gpus", deployment.worker.gpus, 0, kGpusMax));
  return kind.kubernetes ? CheckOnKubernetes(kind, deployment) : Status();
}

}  // namespace hdps
