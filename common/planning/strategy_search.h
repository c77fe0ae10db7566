// Chooses one split for each layer, by propagation or search.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/parallel/plan_graph.h"
#include "common/planning/strategy_choices.h"
#include "common/planning/strategy_cost.h"

namespace hdps {

struct ParallelSpec;

// The most frequent rows of some tables, kept at every worker: what that adds to a step and to a
// worker's memory. Less work than without them is negative.
struct KeptRowsOption {
  uint64_t rows = 0;  // Of each of the tables.
  double seconds = 0;
  double bytes = 0;  // A whole number.
};
// Tables for which the job has one number of kept rows. Invariant: there is at least one option.
// The first one keeps none, or is the only one because the job says it.
struct KeptRowsChoices {
  std::string setting;  // "model.vocab_cache_size"
  std::vector<KeptRowsOption> options;
};

struct FoundStrategy {
  Strategy strategy;
  std::vector<uint32_t> kept;  // Index of the option of each of the groups of tables.
};

// Derives the layers of blocks first, each by its level, then the others: under hybrid_parallel
// they have no choice, under semi_auto_parallel they are propagated from the pins, under
// auto_parallel they are searched as parallel.search_mode says. Rows that workers keep are searched
// with them, always by dynamic_programming. Errors: kInvalidArgument if no strategy fits into the
// memory of a worker, with the memory that the smallest one needs.
Result<FoundStrategy> SearchStrategy(const ParallelSpec& parallel, const JobFacts& facts,
                                     const StrategyChoices& choices, uint32_t workers,
                                     const std::vector<KeptRowsChoices>& tables = {});

// The graph that is searched. Layers that read the same table are one node, because they are cut
// alike.
struct JobPlanGraph {
  PlanGraph graph;
  std::vector<uint32_t> node_of;  // [layers]
};
// `cost` must outlive the graph.
JobPlanGraph PlanGraphOf(const JobFacts& facts, const StrategyChoices& choices, uint32_t workers,
                         const StrategyCost& cost);

}  // namespace hdps
