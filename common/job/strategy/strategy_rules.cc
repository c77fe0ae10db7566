// Rules for workers, shards, blocks and searched strategies that need no number of workers but the
// job's own.
#include <algorithm>

#include "common/base/nearest_name.h"
#include "common/job/dataset_slices.h"
#include "common/job/job_facts.h"
#include "common/job/job_registry.h"
#include "common/job/job_spec.h"
#include "common/job/layer_shard.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/job/text/job_sections.h"

namespace hdps {

namespace {

Status CheckGlobalRank(const JobSource& source, const ParallelSpec& parallel) {
  const bool alone = parallel.parallel_mode == ParallelMode::kStandAlone;
  const uint32_t workers = alone ? 1 : parallel.device_num;
  if (parallel.global_rank < 0 || workers == 0) return {};
  if (static_cast<uint32_t>(parallel.global_rank) < workers) return {};
  return Refuse(source, "parallel.global_rank",
                std::to_string(parallel.global_rank) + ", but " +
                    (alone ? "parallel_mode is stand_alone, whose one worker has rank 0"
                           : "device_num is " + std::to_string(workers) + "; give 0 to " +
                                 std::to_string(workers - 1)));
}

Status CheckShard(const JobSource& source, const Job& job, const std::string& place,
                  const LayerSpec& layer, const ShardTuples& shard) {
  if (shard.empty()) return {};
  const LayerRecord& record = *RegistryOf(job.model).layers.Find(layer.kind);
  const auto wanted = ReadShard(layer, record, shard);
  if (const auto* wrong = std::get_if<std::string>(&wanted)) {
    return Refuse(source, place, ShowTuples(shard) + " of " + Quoted(layer.name) + ": " + *wrong);
  }
  return {};
}

Status CheckBlock(const JobSource& source, const Job& job, size_t number) {
  const BlockSpec& block = job.parallel.blocks[number];
  const std::string place = "parallel.blocks." + std::to_string(number);
  std::vector<std::string> known;
  for (const LayerSpec& layer : job.model.layers) known.push_back(layer.name);
  const auto check_name = [&](const std::string& key, const std::string& name) -> Status {
    if (std::ranges::find(known, name) != known.end()) return {};
    return Refuse(source, place + "." + key,
                  Quoted(name) + " is no layer of the model" + DidYouMean(name, known));
  };
  const bool ends = !block.from.empty() || !block.to.empty();
  if (block.layers.empty() ? block.from.empty() || block.to.empty() : ends) {
    return Refuse(source, place,
                  block.layers.empty() ? "it has no layers; give `layers`, or `from` and `to`"
                                       : "it has `layers` and `from` or `to`; give one of the two");
  }
  for (const std::string& name : block.layers) HDPS_RETURN_IF_ERROR(check_name("layers", name));
  if (!block.from.empty()) HDPS_RETURN_IF_ERROR(check_name("from", block.from));
  if (!block.to.empty()) HDPS_RETURN_IF_ERROR(check_name("to", block.to));
  for (const auto& [key, tuples] : {std::pair("in_strategy", &block.in_strategy),
                                    std::pair("out_strategy", &block.out_strategy)}) {
    for (const std::vector<uint32_t>& tuple : *tuples) {
      if (tuple.size() == 2) continue;
      return Refuse(source, place + "." + key,
                    ShowTuples(*tuples) + " has a tuple of " + std::to_string(tuple.size()) +
                        " numbers; give two, parts of the rows and of the columns");
    }
  }
  if (block.in_strategy.empty() && block.out_strategy.empty() && block.shard.empty()) {
    return Refuse(source, place,
                  "it says nothing of its layers; give in_strategy, out_strategy or shard");
  }
  if (block.device != "auto" && block.device != job.model.device) {
    return Refuse(source, place + ".device",
                  Quoted(block.device) + ", but all layers are computed where model.device says, " +
                      Quoted(job.model.device) + "; leave it out");
  }
  for (const std::string& name : block.layers) {
    const auto layer = std::ranges::find(job.model.layers, name, &LayerSpec::name);
    HDPS_RETURN_IF_ERROR(CheckShard(source, job, place + ".shard", *layer, block.shard));
  }
  return {};
}

// Is true if dataset_strategy gives each worker some of the columns of all examples.
bool SlicesColumns(const ParallelSpec& parallel) {
  return std::ranges::any_of(parallel.dataset_slices, [](const std::vector<uint32_t>& tuple) {
    return CutsColumns(&tuple);
  });
}

// Returns the place in a block that cuts one of its layers for any number of workers; empty if
// there is none.
std::string CertainCutOf(const Job& job, size_t number, const auto& cuts) {
  const BlockSpec& block = job.parallel.blocks[number];
  const std::string place = "parallel.blocks." + std::to_string(number);
  for (const LayerSpec& layer : job.model.layers) {
    const bool inside = std::ranges::count(block.layers, layer.name) > 0 ||
                        layer.name == block.from || layer.name == block.to;
    if (inside && cuts(layer, block.shard)) return place + ".shard";
  }
  for (const auto& [key, tuples] : {std::pair(".in_strategy", &block.in_strategy),
                                    std::pair(".out_strategy", &block.out_strategy)}) {
    if (std::ranges::any_of(*tuples, [](const auto& tuple) { return tuple[1] > 1; })) {
      return place + key;
    }
  }
  return "";
}

// Returns the place of a setting that cuts a layer for any number of workers; empty if there is
// none.
std::string FirstCertainCut(const JobSource& source, const Job& job) {
  const auto cuts = [&job](const LayerSpec& layer, const ShardTuples& shard) {
    if (shard.empty()) return false;
    const auto wanted = ReadShard(layer, *RegistryOf(job.model).layers.Find(layer.kind), shard);
    const auto* split = std::get_if<ShardWanted>(&wanted);
    return split != nullptr && (split->inputs > 1 || split->columns > 1);
  };
  for (size_t i = 0; i < job.model.layers.size(); ++i) {
    const LayerSpec& layer = job.model.layers[i];
    if (cuts(layer, layer.shard)) return PlaceOfLayer(source, job, i, "shard");
  }
  for (size_t b = 0; b < job.parallel.blocks.size(); ++b) {
    if (std::string place = CertainCutOf(job, b, cuts); !place.empty()) return place;
  }
  return SlicesColumns(job.parallel) ? "parallel.dataset_strategy" : "";
}

// Returns the first place where a layer is cut other than by rows; empty if there is none.
std::string FirstCut(const JobSource& source, const Job& job) {
  const ParallelSpec& parallel = job.parallel;
  const bool searched = parallel.parallel_mode == ParallelMode::kAuto &&
                        parallel.dense_exchange == DenseExchange::kAllreduce;
  if (searched) return "parallel.parallel_mode";
  if (!parallel.strategy_load_file.empty()) return "parallel.strategy_ckpt_load_file";
  for (size_t i = 0; i < job.model.layers.size(); ++i) {
    if (!job.model.layers[i].shard.empty()) return PlaceOfLayer(source, job, i, "shard");
  }
  if (!parallel.blocks.empty()) return "parallel.blocks";
  return SlicesColumns(parallel) ? "parallel.dataset_strategy" : "";
}

}  // namespace

Status CheckParallel(const JobSource& source, Job* job) {
  const ParallelSpec& parallel = job->parallel;
  if (parallel.parallel_mode == ParallelMode::kStandAlone && parallel.device_num > 1) {
    return Refuse(
        source, "parallel.device_num",
        std::to_string(parallel.device_num) +
            " workers, but parallel_mode is stand_alone, which is one; use data_parallel");
  }
  HDPS_RETURN_IF_ERROR(CheckGlobalRank(source, parallel));
  HDPS_RETURN_IF_ERROR(CheckDatasetSlices(source, *job));
  if (parallel.collective == "nccl" && job->model.device == "cpu") {
    return Refuse(source, "parallel.collective",
                  "nccl reduces on GPUs, but model.device is cpu; use gloo");
  }
  if (job->model.dense_target == "cuda") {
    const std::string why =
        job->model.device == "cpu" ? "model.device is cpu" : WhyDenseOnHost(*job);
    if (!why.empty()) {
      return Refuse(source, "model.dense_target",
                    "cuda: dense weights cannot be updated on a GPU: " + why +
                        "; change that, or set dense_target = auto");
    }
  }
  if (parallel.device_num > 1 && !parallel.gradients_mean) {
    job->warnings.push_back(
        "parallel.gradients_mean is false: the means of " + std::to_string(parallel.device_num) +
        " workers are summed, as if the learning rate were that many times higher");
  }
  return {};
}

Status CheckStrategySettings(const JobSource& source, const Job& job) {
  const ParallelSpec& parallel = job.parallel;
  for (size_t i = 0; i < job.model.layers.size(); ++i) {
    const LayerSpec& layer = job.model.layers[i];
    HDPS_RETURN_IF_ERROR(
        CheckShard(source, job, PlaceOfLayer(source, job, i, "shard"), layer, layer.shard));
  }
  for (size_t b = 0; b < parallel.blocks.size(); ++b) {
    HDPS_RETURN_IF_ERROR(CheckBlock(source, job, b));
  }
  const std::string place = FirstCut(source, job);
  if (place.empty()) return {};
  const std::string mode(WordOf(parallel.parallel_mode));
  if (parallel.parallel_mode == ParallelMode::kData ||
      parallel.parallel_mode == ParallelMode::kStandAlone) {
    return Refuse(source, place,
                  "under parallel_mode = " + mode +
                      " every worker has the whole model; set parallel.parallel_mode to "
                      "hybrid_parallel or semi_auto_parallel, or leave it out");
  }
  const struct {
    bool wrong;
    const char* place;
    std::string why;
  } needs[] = {
      {parallel.dense_exchange != DenseExchange::kAllreduce, "parallel.dense_exchange",
       "servers hold whole layers, and " + place + " cuts them; use allreduce"},
      {job.train.mode != Mode::kSync, "train.mode",
       std::string(WordOf(job.train.mode)) + ", but the workers of a cut layer (" + place +
           ") compute each step together; use sync"},
      {parallel.dataset_strategy == DatasetStrategy::kFullBatch, "parallel.dataset_strategy",
       "under full_batch every worker has all rows, and " + place +
           " counts on parts of them; use data_parallel"}};
  for (const auto& need : needs) {
    if (need.wrong) return Refuse(source, need.place, need.why);
  }
  const std::string cut = FirstCertainCut(source, job);
  const CutConflict conflict = cut.empty() ? CutConflict() : ConflictWithCuts(job);
  if (conflict.setting.empty()) return {};
  return Refuse(
      source, conflict.setting,
      conflict.problem + ", and " + cut + " cuts one over the workers; leave one of the two out");
}

}  // namespace hdps
