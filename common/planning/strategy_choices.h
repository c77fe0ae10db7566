// The splits that each layer may have: those that the job pins, and those that it leaves open.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/planning/layer_facts.h"

namespace hdps {

struct Job;

// Invariant: there is one nonempty entry for each layer, in the order of the job's layers. Layers
// that read rows, and those that read numeric columns, have one split each, on which they agree.
struct StrategyChoices {
  std::vector<std::vector<LayerSplit>> splits;
  // Fixed by the layer's `shard` or by a block, or only one split is possible.
  std::vector<bool> pinned;
  std::vector<int> level;  // Level of the block that derives the layer; -1 if none does.
};

// Returns the reason why no layer of the job may be cut; empty if layers may be cut.
std::string WhyWhole(const Job& job);

// Errors: kInvalidArgument names the setting, the layer, the value, and what would be right.
Result<StrategyChoices> ChoicesOf(const Job& job, const JobFacts& facts, uint32_t workers);

// The inputs of which parallel.dataset_strategy gives each worker some of the columns.
struct DatasetCuts {
  bool features = false, numbers = false;
};
// Errors: kInvalidArgument if it cuts an input into other parts than one for each worker.
Result<DatasetCuts> DatasetCutsOf(const Job& job, uint32_t workers);

// Returns why layers that read the batch would be split differently; empty if they agree. In a
// step, a worker reads either its own examples, or its features for all examples. With these it may
// have all numeric columns of all examples, or its own.
std::string WhyNotReaders(const JobFacts& facts, const std::vector<LayerSplit>& splits,
                          uint32_t workers);

}  // namespace hdps
