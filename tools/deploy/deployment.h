// Holds what the manifests and scripts of one job are made of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hdps {

// Memory and cores of one member. A cluster keeps the request free for it, and ends it beyond the
// limit.
struct MemberNeeds {
  uint64_t request_bytes = 0, limit_bytes = 0;
  uint32_t cores = 1;
  uint32_t gpus = 0;
};

// A job with the place where it will run. Everything in it was checked: CheckDeployment().
struct Deployment {
  std::string name;      // Of the job in the cluster, and the beginning of its members' names.
  std::string job_path;  // The job file as it was given.
  std::string job_text;  // Its content.
  std::string set;       // The value of --set; empty: none.
  std::string out;       // Folder of the run. On Kubernetes it is relative to the volume.
  uint32_t servers = 1, workers = 1;
  MemberNeeds scheduler, server, worker, serving;
  bool insecure = false;             // No keys.
  bool allreduce = false;            // Workers exchange dense gradients with each other.
  bool insecure_collective = false;  // They do although that exchange knows no keys.
  uint32_t leave_s = 25;             // Seconds in which a member that has to go hands over.

  // Only on Kubernetes.
  std::string image;
  std::string name_space;   // Empty: that of whoever applies the manifest.
  std::string claim;        // The PersistentVolumeClaim of data and results.
  std::string data_folder;  // Folder of the volume in which relative paths of the job begin.
  std::string keys_secret;  // The Secret with the job's keys; empty: none.
  std::string http_secret;  // The Secret with token, tls.crt and tls.key of HTTP; empty: none.
  uint32_t port = 8118;     // Port of the scheduler. Those beside it are for servers and HTTP.
  uint32_t uid = 10001;     // The user of the processes.
};

}  // namespace hdps
