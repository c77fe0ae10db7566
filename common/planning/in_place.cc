// Looks for what only the process of a worker knows.
#include "common/planning/in_place.h"

#include <algorithm>

#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/kafka/kafka_entry.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"

namespace hdps {
namespace {

bool MeetsOthers(const LayerSpec& layer) {
  const auto over = layer.words.find("over");
  return (over != layer.words.end() && over->second == "batch") ||
         layer.dense_exchange == "allreduce" || layer.layerwise_parallel;
}

}  // namespace

std::string WhyNotInPlace(const Job& job) {
  if (IsTablesJob(job)) return "the states of the workers' own programs are of the checkpoint";
  if (job.parallel.dense_exchange == DenseExchange::kAllreduce ||
      std::ranges::any_of(job.model.layers, MeetsOthers)) {
    return "workers meet in each step (dense_exchange allreduce, or over batch)";
  }
  const auto keeps = [](const TableSpec& table) { return table.vocab_cache_size > 0; };
  if (std::ranges::any_of(job.tables, keeps)) return "workers keep rows (vocab_cache_size)";
  if (ReadsTopic(job.data)) return "a topic is read again from where the round began";
  if (job.train.progressive.window > 0) {
    return "the newest scores of train.progressive were at that worker";
  }
  if (job.train.mode == Mode::kSync && job.train.clip_norm > 0) {
    return "the norm of the step at hand is not kept (train.clip_norm)";
  }
  return "";
}

}  // namespace hdps
