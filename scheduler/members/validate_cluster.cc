// Whether a job fits the cluster it is started with.
#include "scheduler/members/validate_cluster.h"

#include <string>

#include "common/net/address.h"
#include "common/net/frame.h"
#include "common/planning/strategy_of_job.h"

namespace hdps {

Status ValidateCluster(const Job& job, uint32_t num_servers, uint32_t num_workers) {
  HDPS_RETURN_IF_ERROR(ValidateMembers(job, num_servers, num_workers));
  const uint32_t replicas = job.cluster.replicas;
  if (replicas > 0 && replicas >= num_servers) {
    return {Code::kInvalidArgument,
            "cluster.replicas is " + std::to_string(replicas) + ", but the job is started with " +
                "--servers=" + std::to_string(num_servers) +
                ": the copies of a row are on other servers than the row; start at least " +
                std::to_string(replicas + 1) + ", or set cluster.replicas to " +
                std::to_string(num_servers - 1)};
  }
  return {};
}

Status ValidateMembers(const Job& job, uint32_t num_servers, uint32_t num_workers) {
  const std::string workers = std::to_string(num_workers);
  if (num_workers == 0 || num_servers == 0) {
    return {Code::kInvalidArgument, "--workers=" + workers +
                                        " --servers=" + std::to_string(num_servers) +
                                        ": a job needs at least one of each"};
  }
  if (job.parallel.device_num != 0 && job.parallel.device_num != num_workers) {
    return {Code::kInvalidArgument, "parallel.device_num is " +
                                        std::to_string(job.parallel.device_num) +
                                        ", but the job is started with --workers=" + workers +
                                        "; make them equal, or leave device_num out"};
  }
  if (job.parallel.parallel_mode == ParallelMode::kStandAlone && num_workers > 1) {
    return {Code::kInvalidArgument,
            "parallel.parallel_mode is stand_alone, but the job is started "
            "with --workers=" +
                workers + "; use --workers=1 or data_parallel"};
  }
  if (job.parallel.dataset_strategy == DatasetStrategy::kDataParallel &&
      job.train.batch_size < num_workers) {
    return {Code::kInvalidArgument, "train.batch_size is " + std::to_string(job.train.batch_size) +
                                        ", less than one row " + "for each of the " + workers +
                                        " workers; make it at least " + workers +
                                        ", or set parallel.dataset_strategy to full_batch"};
  }
  if (job.cluster.shards < num_servers) {
    return {Code::kInvalidArgument, "cluster.shards is " + std::to_string(job.cluster.shards) +
                                        ", too few for --servers=" + std::to_string(num_servers) +
                                        ": every server needs a shard"};
  }
  // Whether its layers can lie over so many workers, as the job says.
  HDPS_RETURN_IF_ERROR(StrategyOf(job, num_workers).status());
  // Every member is told of every other in one message, a View.
  constexpr uint64_t kMemberBytes = 64;  // In a View, beside its address; rounded up.
  const uint64_t view_bytes =
      uint64_t{num_servers} * (1 + job.cluster.replicas) * (kMemberBytes + kAddressBytesMax) +
      uint64_t{num_workers} * kMemberBytes + uint64_t{job.cluster.shards} * sizeof(uint32_t);
  if (view_bytes > kEnvelopeBytesMax) {
    return {Code::kInvalidArgument,
            "--servers=" + std::to_string(num_servers) + " --workers=" + workers +
                ": more members than one message can name; " + std::to_string(view_bytes) +
                " bytes, at most " + std::to_string(kEnvelopeBytesMax)};
  }
  return {};
}

std::vector<std::string> WarningsOf(const Job& job, uint32_t num_workers) {
  std::vector<std::string> warnings = job.warnings;
  // A job that names its workers was warned of when it was read.
  if (num_workers > 1 && !job.parallel.gradients_mean && job.parallel.device_num == 0) {
    warnings.push_back("parallel.gradients_mean is false: the means of " +
                       std::to_string(num_workers) +
                       " workers are summed, as if the learning rate were that many times higher");
  }
  return warnings;
}

}  // namespace hdps
