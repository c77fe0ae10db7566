// Chooses one split for each layer, by propagation or search.
#pragma once

#include "common/base/status.h"
#include "common/parallel/plan_graph.h"
#include "common/planning/strategy_choices.h"
#include "common/planning/strategy_cost.h"

namespace hdps {

struct ParallelSpec;

// Derives the layers of blocks first, each by its level, then the others: under hybrid_parallel
// they have no choice, under semi_auto_parallel they are propagated from the pins, under
// auto_parallel they are searched as parallel.search_mode says. Errors: kInvalidArgument if no
// strategy fits into the memory of a worker, with the memory that the smallest one needs.
Result<Strategy> SearchStrategy(const ParallelSpec& parallel, const JobFacts& facts,
                                const StrategyChoices& choices, uint32_t workers);

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
