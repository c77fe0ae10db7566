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

// A way to have some tables: their most frequent rows kept at every worker, and a cut over the
// servers. It says what that adds to a step and to a worker's memory, beside tables whose keys are
// spread by hash and of which no rows are kept. Less work than these have is negative.
struct TableOption {
  uint64_t kept = 0;  // Rows of each of the tables that a worker keeps.
  double seconds = 0;
  double bytes = 0;      // A whole number.
  std::string cut = {};  // "parts of features 2, 3"; empty for the cut that the job has.
  std::vector<std::string> settings = {};  // What the job must say beyond what it says.
};
// Tables for which the job has the same settings. Invariant: there is at least one option, and the
// first one is the job as it is.
struct TableChoices {
  std::vector<TableOption> options;
};

struct FoundStrategy {
  Strategy strategy;
  std::vector<uint32_t> options;  // Index of the option of each of the groups of tables.
};

// Derives the layers of blocks first, each by its level, then the others: under hybrid_parallel
// they have no choice, under semi_auto_parallel they are propagated from the pins, under
// auto_parallel they are searched as parallel.search_mode says. Rows that workers keep are searched
// with them, always by dynamic_programming. Errors: kInvalidArgument if no strategy fits into the
// memory of a worker, with the memory that the smallest one needs.
Result<FoundStrategy> SearchStrategy(const ParallelSpec& parallel, const JobFacts& facts,
                                     const StrategyChoices& choices, uint32_t workers,
                                     const std::vector<TableChoices>& tables = {});

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
