// Which splits each layer may have: what the job pins, and what it leaves open.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/planning/layer_facts.h"

namespace hdps {

struct Job;

// Invariant: an entry a layer, in the order of the job's, none of them empty; layers that read rows
// may be cut by features all, or none.
struct StrategyChoices {
  std::vector<std::vector<LayerSplit>> splits;
  std::vector<bool> pinned;  // Said by the layer's `shard` or by a block; also where one is left.
  std::vector<int> level;    // Of the block that derives the layer; -1: no block does.
};

// kInvalidArgument names the setting, the layer, the value, and what would be right.
Result<StrategyChoices> ChoicesOf(const Job& job, const JobFacts& facts, uint32_t workers);

// Why layers that read rows would lie differently; empty: they lie alike. What a worker reads of a
// step are either its own examples, or its features of all.
std::string WhyNotRows(const JobFacts& facts, const std::vector<LayerSplit>& splits,
                       uint32_t workers);

}  // namespace hdps
