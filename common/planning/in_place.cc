// Looks for what only the process of a worker knows.
#include "common/planning/in_place.h"

#include <algorithm>

#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"

namespace hdps {
namespace {

bool ExchangesValues(const LayerSpec& layer) {
  const auto over = layer.words.find("over");
  return (over != layer.words.end() && over->second == "batch") || layer.layerwise_parallel;
}

// Returns why workers that sum dense gradients cannot meet at one step again.
std::string WhyNotMeetAgain(const Job& job) {
  if (job.train.mode != Mode::kSync) return "its sums and its rows are of no common step (async)";
  if (job.train.clip_norm > 0) {
    return "its norm was of sums that others may not have (train.clip_norm)";
  }
  if (job.parallel.optimizer.enabled) {
    return "its part of the optimizer's state was nowhere else (enable_parallel_optimizer)";
  }
  const auto at_servers = [](const LayerSpec& layer) { return layer.dense_exchange == "servers"; };
  if (std::ranges::any_of(job.model.layers, at_servers)) {
    return "its step ends behind the sums (dense_exchange of a layer is servers)";
  }
  return "";
}

}  // namespace

std::string WhyNotInPlace(const Job& job) {
  if (IsTablesJob(job)) return "the states of the workers' own programs are of the checkpoint";
  if (std::ranges::any_of(job.model.layers, ExchangesValues)) {
    return "layers exchange values with it (over batch), or were its own (layerwise_parallel)";
  }
  const ParallelMode mode = job.parallel.parallel_mode;
  if (mode != ParallelMode::kStandAlone && mode != ParallelMode::kData) {
    return "a strategy may have cut layers (parallel_mode)";
  }
  if (job.parallel.dense_exchange == DenseExchange::kAllreduce) {
    if (const std::string why = WhyNotMeetAgain(job); !why.empty()) return why;
  }
  const auto keeps = [](const TableSpec& table) { return table.vocab_cache_size > 0; };
  if (std::ranges::any_of(job.tables, keeps)) return "workers keep rows (vocab_cache_size)";
  return "";
}

Clock StepsTakenUp(const Job& job) {
  const bool meet = job.parallel.dense_exchange == DenseExchange::kAllreduce;
  return meet && WhyNotInPlace(job).empty() ? 2 : 0;
}

}  // namespace hdps
