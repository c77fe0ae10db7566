// How the work of a job lies over its workers, and how they exchange gradients.
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

enum class DatasetStrategy : uint8_t { kDataParallel, kFullBatch };
constexpr auto WordsOf(DatasetStrategy) {
  using enum DatasetStrategy;
  return EnumWords(kDataParallel, "data_parallel", kFullBatch, "full_batch");
}

// How work is spread over the workers. kHybrid: as the layers' `shard` says. kSemiAuto: the same,
// and what they leave open is filled in. kAuto: all of it is searched.
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

// Which tensors travel together in a collective of one kind.
enum class FusionMode : uint8_t { kAuto, kSize, kIndex };
constexpr auto WordsOf(FusionMode) {
  using enum FusionMode;
  return EnumWords(kAuto, "auto", kSize, "size", kIndex, "index");
}
struct FusionSpec {
  FusionMode mode = FusionMode::kAuto;
  uint32_t mebibytes = 64;      // kSize; kAuto has 64.
  std::vector<uint32_t> index;  // kIndex: tensors before each of these numbers travel together.
  friend bool operator==(const FusionSpec&, const FusionSpec&) = default;
};
struct CommFusionSpec {
  bool openstate = true;  // false: every tensor on its own.
  FusionSpec allreduce, allgather, reducescatter;
  friend bool operator==(const CommFusionSpec&, const CommFusionSpec&) = default;
};

// The update of dense tensors under allreduce split over the workers.
struct OptimizerShardSpec {
  bool enabled = false;
  int32_t weight_shard_size = -1;  // Workers that share one tensor; -1: all.
  uint32_t threshold_kib = 64;     // Smaller tensors are not split.
  uint32_t level = 1;              // 1: weights and state; 2: gradients too.
  friend bool operator==(const OptimizerShardSpec&, const OptimizerShardSpec&) = default;
};

// Layers that are cut together: how what goes in and what comes out lies over the workers is said,
// and what lies between follows.
struct BlockSpec {
  std::vector<std::string> layers;  // By name; or
  std::string from, to;             // all that lie on a way from one layer to another, both too.
  // Parts of the rows and the columns of what goes in, a tuple an input or one for all; of what
  // comes out; or, as a layer's `shard`, of each of the layers. Empty: not said.
  std::vector<std::vector<uint32_t>> in_strategy = {}, out_strategy = {}, shard = {};
  std::string device = "auto";
  uint32_t level = 0;  // What lies between: 0: as little as can be moves. 1: memory. 2: time.
  friend bool operator==(const BlockSpec&, const BlockSpec&) = default;
};

// Names as MindSpore's users know them.
struct ParallelSpec {
  ParallelMode parallel_mode = ParallelMode::kData;
  uint32_t device_num = 0;     // Workers; 0 = as many as join.
  bool gradients_mean = true;  // true: mean over all examples; false: sum over workers of means.
  bool cross_batch = false;    // true: each worker's mean counts the same, whatever its rows.
  DatasetStrategy dataset_strategy =
      DatasetStrategy::kDataParallel;  // full_batch: same data to all.
  // Tuples of dataset_strategy, one an input: how many parts of each of its axes, one part a
  // worker. Inputs are the sparse features [examples, features] and the numeric columns [examples,
  // columns]. Empty: as the word above says.
  std::vector<std::vector<uint32_t>> dataset_slices;
  DenseExchange dense_exchange = DenseExchange::kServers;
  std::string collective = "auto";  // auto | gloo | nccl
  // Under allreduce:
  CommFusionSpec comm_fusion = {};
  bool gradient_fp32_sync = true;  // false: 16 bits on the way, sums in 32.
  OptimizerShardSpec optimizer = {};
  uint32_t interleave_num = 1;  // Copies of the model that take turns in one step.
  bool loss_sum = false;        // The loss of the copies is their sum, not their mean.
  // A file to keep the strategy in, and one to take it from; empty: none.
  std::string strategy_save_file, strategy_load_file;
  SearchMode search_mode = SearchMode::kDynamicProgramming;  // kAuto
  bool fully_use_devices = true;     // kAuto: every layer is spread over all workers.
  uint64_t worker_memory_limit = 0;  // Bytes of dense parameters, their gradients and state, and
                                     // of activations that a worker may have; 0: any.
  std::vector<BlockSpec> blocks;
  std::string constants_file;  // What a machine does in how much time, to plan by; empty: built in.
  // What LoadJob found in these files. A strategy is planned by the job alone, the same by all.
  std::optional<KeptStrategy> kept_strategy;
  StepRates rates = {};
  // Of weights pulled to train and of gradients pushed, of all tables, between workers and servers.
  DType wire = DType::kFp32;
};

}  // namespace hdps
