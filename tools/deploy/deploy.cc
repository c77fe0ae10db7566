// Implements hdps deploy: prints what starts a job on a cluster, and does nothing else.
#include <gflags/gflags.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/nearest_name.h"
#include "common/base/outside_text.h"
#include "common/job/given_job.h"
#include "common/job/job_facts.h"
#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/planning/placement.h"
#include "common/platform/file_system.h"
#include "common/process/terminal.h"
#include "scheduler/members/validate_cluster.h"
#include "tools/commands.h"
#include "tools/common_flags.h"
#include "tools/deploy/check_deployment.h"
#include "tools/deploy/checks.h"
#include "tools/deploy/deploy_kind.h"
#include "tools/deploy/needs.h"
#include "tools/plan/plan_question.h"
#include "tools/warnings.h"

DEFINE_string(to, "", "Kind of cluster: jobset, jobs, trainjob, msjob, kserve or slurm");
DEFINE_string(image, "", "Image that has hdps, as registry.example/hdps:1.0");
DEFINE_string(namespace, "", "Namespace of the objects; empty: that of whoever applies them");
DEFINE_string(
    claim, "hdps",
    "PersistentVolumeClaim with the job's data and for its results, which the pods of all "
    "nodes can write");
DEFINE_string(
    data_folder, "",
    "Folder of the volume in which relative paths of the job file begin; empty: its root");
DEFINE_string(keys_secret, "hdps-keys",
              "Secret with the files of hdps keygen; with --insecure there is none");
DEFINE_string(http_secret, "",
              "Secret with token, tls.crt and tls.key, with which members answer monitoring beyond "
              "their pods; empty: with keys they answer within their pods alone");
DEFINE_int32(gpus, -1,
             "NVIDIA GPUs of each worker; -1: one if model.device is cuda, and none otherwise");
DEFINE_uint32(port, 0,
              "Port of the scheduler. Servers have the next two, and HTTP the one before; 0: 8118, "
              "and for msjob 2222");
DEFINE_uint32(uid, 10001, "Number of the user whose processes run in the pods");
DEFINE_uint32(leave_s, 25, "Seconds in which a member that has to go hands over what it can");
DEFINE_string(server_memory, "",
              "Memory limit of a server, as 8Gi; empty: foreseen from the job and --rows");
DEFINE_string(worker_memory, "", "Memory limit of a worker, as 8Gi; empty: foreseen from the job");
DEFINE_uint32(server_cores, 0, "Cores of a server; 0: foreseen as hdps plan does");
DEFINE_uint32(worker_cores, 0, "Cores of a worker; 0: foreseen as hdps plan does");
DECLARE_bool(insecure);
DECLARE_bool(insecure_collective);
DECLARE_double(zipf);
DECLARE_string(name);
DECLARE_string(set);
DECLARE_uint32(servers);
DECLARE_uint32(workers);

namespace hdps {
namespace {

Status Mistake(const std::string& message) { return Status(Code::kInvalidArgument, message); }

Result<DeployKind> ReadKind() {
  std::vector<std::string> names;
  std::string list;
  for (const DeployKind& kind : DeployKinds()) {
    if (FLAGS_to == kind.name) return kind;
    names.emplace_back(kind.name);
    list += (list.empty() ? "" : ", ") + std::string(kind.name);
  }
  if (FLAGS_to.empty()) return Mistake("--to is missing; give the kind of cluster, one of " + list);
  return Mistake("--to=" + FLAGS_to + ": expected one of " + list + DidYouMean(FLAGS_to, names));
}

Status ReadMemory(const std::string& flag, const std::string& text, MemberNeeds* needs) {
  if (text.empty()) return {};
  HDPS_ASSIGN_OR_RETURN(const uint64_t bytes, ReadQuantity(flag, text));
  *needs = WithMemory(*needs, bytes);
  return {};
}

// Sets what every member needs: as foreseen, or as the operator says.
Status FillNeeds(const Job& job, Deployment* deployment) {
  const double counted = CountedRows(job);
  HDPS_ASSIGN_OR_RETURN(const double rows, ReadRowsFlag(counted > 0 ? counted : kRowsUsual));
  if (!(FLAGS_zipf >= 0 && FLAGS_zipf <= 10)) {
    return Mistake("--zipf=" + std::to_string(FLAGS_zipf) + " is out of range; give 0 to 10");
  }
  if (FLAGS_gpus < -1) {
    return Mistake("--gpus=" + std::to_string(FLAGS_gpus) + " is out of range; give 0 or more");
  }
  const bool wants_gpu = job.model.device == "cuda";
  deployment->worker.gpus = FLAGS_gpus < 0 ? wants_gpu : static_cast<uint32_t>(FLAGS_gpus);
  if (wants_gpu && deployment->worker.gpus == 0) {
    return Mistake("--gpus=0: model.device is cuda, so each worker needs one; give --gpus=1");
  }
  HDPS_RETURN_IF_ERROR(ForeseeNeeds(job, rows, FLAGS_zipf, deployment));
  HDPS_RETURN_IF_ERROR(ReadMemory("--server_memory", FLAGS_server_memory, &deployment->server));
  HDPS_RETURN_IF_ERROR(ReadMemory("--worker_memory", FLAGS_worker_memory, &deployment->worker));
  if (FLAGS_server_cores > 0) deployment->server.cores = FLAGS_server_cores;
  if (FLAGS_worker_cores > 0) deployment->worker.cores = FLAGS_worker_cores;
  return {};
}

// Returns a warning for each file of the job that the pods do not see.
Result<std::vector<std::string>> UnseenFiles(const WrittenJob& text,
                                             const std::vector<std::string>& overrides) {
  HDPS_ASSIGN_OR_RETURN(const Job job, ParseJob(text.text, text.origin, overrides));
  std::vector<std::string> warnings;
  for (const std::string& path : job.data.train) {
    if (!path.starts_with('/') || path.starts_with("/data/")) continue;
    warnings.push_back("data.train: " + path +
                       " is not on the volume, which pods see as /data; give a path relative to "
                       "--data_folder");
  }
  return warnings;
}

// Returns the flag --out, or a folder with the name of the job.
std::string OutOf(const DeployKind& kind, const CommonFlags& flags, const std::string& name) {
  std::string out = flags.out.empty() ? "out/" + name : flags.out;
  while (kind.kubernetes && out.size() > 1 && out.back() == '/') out.pop_back();
  return out;
}

Status Run(const std::vector<std::string>& arguments) {
  HDPS_ASSIGN_OR_RETURN(const DeployKind kind, ReadKind());
  if (arguments.size() != 1) {
    return Mistake(arguments.empty()
                       ? "the job file is missing; write hdps deploy JOB --to=" + FLAGS_to
                       : "\"" + arguments[1] + "\" is one job file too many; give one");
  }
  HDPS_ASSIGN_OR_RETURN(CommonFlags flags, ReadCommonFlags());
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  HDPS_ASSIGN_OR_RETURN(const WrittenJob text, ReadWrittenJob(*files, arguments.front()));
  const std::vector<std::string> overrides = flags.overrides;
  HDPS_ASSIGN_OR_RETURN(const Job job, LoadPlannedJob(*files, text, &flags.overrides, FLAGS_workers,
                                                      DataFiles::kNotNeeded));
  HDPS_RETURN_IF_ERROR(NeedsLayers(job, "hdps deploy"));
  Deployment deployment;
  deployment.job_path = arguments.front();
  deployment.job_text = text.text;
  deployment.set = FLAGS_set;
  deployment.name = FLAGS_name.empty() ? ObjectNameOf(job.name) : FLAGS_name;
  deployment.out = OutOf(kind, flags, deployment.name);
  deployment.servers = FLAGS_servers;
  deployment.workers = FLAGS_workers;
  deployment.leave_s = FLAGS_leave_s;
  deployment.insecure = FLAGS_insecure;
  deployment.allreduce = job.parallel.dense_exchange == DenseExchange::kAllreduce;
  deployment.insecure_collective = FLAGS_insecure_collective;
  deployment.image = FLAGS_image;
  deployment.name_space = FLAGS_namespace;
  deployment.claim = FLAGS_claim;
  deployment.data_folder = FLAGS_data_folder;
  const bool usual_keys = gflags::GetCommandLineFlagInfoOrDie("keys_secret").is_default;
  deployment.keys_secret = FLAGS_insecure && usual_keys ? "" : FLAGS_keys_secret;
  deployment.http_secret = FLAGS_http_secret;
  deployment.port = FLAGS_port > 0 ? FLAGS_port : kind.port;
  deployment.uid = FLAGS_uid;
  if (!kind.serves) HDPS_RETURN_IF_ERROR(ValidateCluster(job, FLAGS_servers, FLAGS_workers));
  HDPS_RETURN_IF_ERROR(FillNeeds(job, &deployment));
  HDPS_RETURN_IF_ERROR(CheckDeployment(kind, deployment));
  PrintWarnings(job.warnings);
  if (kind.kubernetes) {
    HDPS_ASSIGN_OR_RETURN(const std::vector<std::string> unseen, UnseenFiles(text, overrides));
    PrintWarnings(unseen);
  }
  PrintOutText(kind.print(deployment));
  return {};
}

}  // namespace

Subcommand DeployCommand() {
  return {"deploy",
          "print what starts a job on Kubernetes or under Slurm",
          "hdps deploy JOB --to=jobset|jobs|trainjob|msjob|kserve --image=IMAGE\n"
          "            [--servers=M --workers=N] [flags]\n"
          "hdps deploy JOB --to=slurm [--servers=M --workers=N] [flags]\n"
          "Reads and checks the job, prints to stdout, and does nothing else.",
          {"to",           "image",         "servers",
           "workers",      "set",           "name",
           "namespace",    "claim",         "data_folder",
           "out",          "keys_secret",   "http_secret",
           "insecure",     "gpus",          "port",
           "uid",          "leave_s",       "rows",
           "zipf",         "server_memory", "worker_memory",
           "server_cores", "worker_cores",  "insecure_collective"},
          nullptr,
          Run};
}

}  // namespace hdps
