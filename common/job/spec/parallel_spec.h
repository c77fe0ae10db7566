// The settings that spread the work of a job over its workers and exchange their gradients.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/dtype.h"
#include "common/base/enum_words.h"
#include "common/parallel/kept_strategy.h"
#include "common/parallel/step_rates.h"

namespace hdps {

enum class DenseExchange : uint8_t { kServers, kAllreduce };
constexpr auto WordsOf(DenseExchange) {
  using enum DenseExchange;
  return EnumWords(kServers, "servers", kAllreduce, "allreduce");
}

// Says who adds up the values of an allreduce: this project, in the order of the ranks, or the
// library that moves them, in an order of its own.
enum class ReductionOrder : uint8_t { kOrdered, kLibrary };
constexpr auto WordsOf(ReductionOrder) {
  using enum ReductionOrder;
  return EnumWords(kOrdered, "ordered", kLibrary, "library");
}

enum class DatasetStrategy : uint8_t { kDataParallel, kFullBatch };
constexpr auto WordsOf(DatasetStrategy) {
  using enum DatasetStrategy;
  return EnumWords(kDataParallel, "data_parallel", kFullBatch, "full_batch");
}

// The mode of spreading work over the workers. kHybrid follows the layers' `shard`. kSemiAuto does
// too and derives the rest. kAuto searches all of it.
enum class ParallelMode : uint8_t { kStandAlone, kData, kHybrid, kSemiAuto, kAuto };
constexpr auto WordsOf(ParallelMode) {
  using enum ParallelMode;
  return EnumWords(kStandAlone, "stand_alone", kData, "data_parallel", kHybrid, "hybrid_parallel",
                   kSemiAuto, "semi_auto_parallel", kAuto, "auto_parallel");
}
enum class SearchMode : uint8_t { kDynamicProgramming, kRecursiveProgramming, kPropagation };
constexpr auto WordsOf(SearchMode) {
  using enum SearchMode;
  return EnumWords(kDynamicProgramming, "dynamic_programming", kRecursiveProgramming,
                   "recursive_programming", kPropagation, "sharding_propagation");
}

// Selects the tensors that are sent together in a collective of one kind.
enum class FusionMode : uint8_t { kAuto, kSize, kIndex };
constexpr auto WordsOf(FusionMode) {
  using enum FusionMode;
  return EnumWords(kAuto, "auto", kSize, "size", kIndex, "index");
}
struct FusionSpec {
  FusionMode mode = FusionMode::kAuto;
  uint32_t mebibytes = 64;      // kSize; kAuto uses 64.
  std::vector<uint32_t> index;  // kIndex: tensors before each of these numbers are sent together.
  friend bool operator==(const FusionSpec&, const FusionSpec&) = default;
};
struct CommFusionSpec {
  bool openstate = true;  // If false, every tensor is sent alone.
  FusionSpec allreduce, allgather, reducescatter;
  friend bool operator==(const CommFusionSpec&, const CommFusionSpec&) = default;
};

// Splits the update of dense tensors under allreduce over the workers.
struct OptimizerShardSpec {
  bool enabled = false;
  int32_t weight_shard_size = -1;  // Workers that share a tensor; -1 for all.
  uint32_t threshold_kib = 64;     // Smaller tensors are not split.
  uint32_t level = 1;              // 1: weights and state; 2: gradients too.
  friend bool operator==(const OptimizerShardSpec&, const OptimizerShardSpec&) = default;
};

// A block of layers that are cut together. The job gives the cut of its inputs and outputs, and
// that of the layers between them is derived.
struct BlockSpec {
  std::vector<std::string> layers;  // Names of the layers; empty if `from` and `to` are given.
  std::string from, to;  // Instead: all layers on a path from one to the other, inclusive.
  // Parts of the rows and columns of the inputs, one tuple for each input or one for all; of the
  // outputs; or of each of the layers, like a layer's `shard`. Empty if not given.
  std::vector<std::vector<uint32_t>> in_strategy = {}, out_strategy = {}, shard = {};
  std::string device = "auto";
  uint32_t level = 0;  // The layers between minimize 0: what is moved, 1: memory, 2: time.
  friend bool operator==(const BlockSpec&, const BlockSpec&) = default;
};

// The names are those of MindSpore.
struct ParallelSpec {
  ParallelMode parallel_mode = ParallelMode::kData;
  uint32_t device_num = 0;  // Number of workers; 0 for as many as join.
  // The rank that a worker with this job text asks for; -1: any. Nobody else reads it.
  int32_t global_rank = -1;
  // true: mean over all examples; false: sum over the workers of their means.
  bool gradients_mean = true;
  // true: each worker's mean has the same weight, whatever its number of rows.
  bool cross_batch = false;
  DatasetStrategy dataset_strategy =
      DatasetStrategy::kDataParallel;  // full_batch: same data for all.
  // The tuples of dataset_strategy, one for each input: the number of parts of each of its axes,
  // one part for each worker. Inputs are the sparse features [examples, features] and the numeric
  // columns [examples, columns]. Empty if a word was given.
  std::vector<std::vector<uint32_t>> dataset_slices;
  DenseExchange dense_exchange = DenseExchange::kServers;
  // auto_parallel without a dense_exchange: kAllreduce until LoadPlannedJob() chooses.
  bool exchange_open = false;
  std::string collective = "auto";  // auto | gloo | nccl
  ReductionOrder reduction = ReductionOrder::kOrdered;
  // The fields up to `optimizer` apply under allreduce.
  CommFusionSpec comm_fusion = {};
  bool gradient_fp32_sync = true;  // false: sends 16 bits, adds in 32.
  OptimizerShardSpec optimizer = {};
  uint32_t interleave_num = 1;  // Copies of the model that take turns within a step.
  bool loss_sum = false;        // The loss is the sum over the copies instead of the mean.
  // Files to write the strategy to and to read it from; empty for none.
  std::string strategy_save_file, strategy_load_file;
  SearchMode search_mode = SearchMode::kDynamicProgramming;  // kAuto
  bool fully_use_devices = true;  // kAuto: every layer is spread over all workers.
  // Bytes that a worker may use for dense parameters, their gradients and state, and activations; 0
  // for no limit.
  uint64_t worker_memory_limit = 0;
  std::vector<BlockSpec> blocks;
  std::string constants_file;  // Speeds of a machine, for planning; empty for the built-in ones.
  // The contents of these files, read by LoadJob(), so that the strategy depends only on the job
  // and all processes plan the same.
  std::optional<KeptStrategy> kept_strategy;
  StepRates rates = {};
  // Settings of tables that the job does not say, such as "model.vocab_cache_size", which
  // auto_parallel may choose.
  std::vector<std::string> open_settings;
  std::string choice;  // Tells what LoadPlannedJob() chose and why; empty if it chose nothing.
  // Format on the wire between workers and servers of weights that are pulled for training and of
  // gradients that are pushed, for all tables.
  DType wire = DType::kFp32;
};

}  // namespace hdps
