// Checks whether a job fits the cluster it is started with.
#include "scheduler/members/validate_cluster.h"

#include <algorithm>
#include <bit>
#include <string>

#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/net/address.h"
#include "common/net/frame.h"
#include "common/planning/strategy_of_job.h"

namespace hdps {
namespace {

// Checks that each copy of the model has an example of every micro-batch.
Status ValidateCopies(const Job& job, uint32_t num_workers) {
  const bool split = job.parallel.dataset_strategy == DatasetStrategy::kDataParallel;
  const uint32_t rows = split ? job.train.batch_size / num_workers : job.train.batch_size;
  const uint32_t parts = job.train.micro_batches, copies = job.parallel.interleave_num;
  if (copies <= std::max(rows / parts, 1u)) return {};
  return {Code::kInvalidArgument,
          "parallel.interleave_num is " + std::to_string(copies) +
              ", but with --workers=" + std::to_string(num_workers) + " a worker has " +
              std::to_string(rows) + (rows == 1 ? " example" : " examples") + " of a step" +
              (parts == 1 ? "" : " in " + std::to_string(parts) + " parts") +
              "; give at most one copy an example, or a larger train.batch_size"};
}

}  // namespace

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
  if (!job.data.parts.empty() && job.data.parts.size() != num_workers) {
    return {Code::kInvalidArgument, "data.parts has " + std::to_string(job.data.parts.size()) +
                                        " numbers, but the job is started with --workers=" +
                                        workers + "; give one for each worker"};
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
  HDPS_RETURN_IF_ERROR(ValidateCopies(job, num_workers));
  if (job.cluster.shards < num_servers) {
    return {Code::kInvalidArgument, "cluster.shards is " + std::to_string(job.cluster.shards) +
                                        ", too few for --servers=" + std::to_string(num_servers) +
                                        ": every server needs a shard; make it " +
                                        std::to_string(std::bit_ceil(num_servers)) +
                                        " or more before the first step, or start fewer"};
  }
  // StrategyOf tells whether the layers can be cut over that many workers.
  HDPS_ASSIGN_OR_RETURN(const Strategy strategy, StrategyOf(job, num_workers));
  if (!strategy.data_parallel()) HDPS_RETURN_IF_ERROR(CheckCutTraining(job));
  // A view, which describes every member, is sent in one message.
  constexpr uint64_t kMemberBytes = 64;  // In a View, besides its address; rounded up.
  const uint64_t view_bytes =
      uint64_t{num_servers} * (1 + job.cluster.replicas) * (kMemberBytes + kAddressBytesMax) +
      uint64_t{num_workers} * kMemberBytes + uint64_t{job.cluster.shards} * sizeof(uint32_t);
  if (view_bytes > kEnvelopeBytesMax) {
    return {Code::kInvalidArgument,
            "--servers=" + std::to_string(num_servers) + " --workers=" + workers +
                ": more members than one message can name; " + std::to_string(view_bytes) +
                " bytes, at most " + std::to_string(kEnvelopeBytesMax) + "; start fewer"};
  }
  return {};
}

std::vector<std::string> WarningsOf(const Job& job, uint32_t num_workers) {
  std::vector<std::string> warnings = job.warnings;
  // A job that sets the number of workers was warned about when it was read.
  if (num_workers > 1 && !job.parallel.gradients_mean && job.parallel.device_num == 0) {
    warnings.push_back("parallel.gradients_mean is false: the means of " +
                       std::to_string(num_workers) +
                       " workers are summed, as if the learning rate were that many times higher");
  }
  // A process alone is worker 0 in any case.
  if (job.parallel.global_rank > 0 || (job.parallel.global_rank == 0 && num_workers > 1)) {
    warnings.push_back("parallel.global_rank = " + std::to_string(job.parallel.global_rank) +
                       " is ignored here: it counts only in the command of an hdps-worker, and "
                       "each has another");
  }
  return warnings;
}

}  // namespace hdps
