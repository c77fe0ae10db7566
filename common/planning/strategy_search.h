// From what layers may be to one split each: propagated or searched.
#pragma once

#include "common/base/status.h"
#include "common/parallel/plan_graph.h"
#include "common/planning/strategy_choices.h"
#include "common/planning/strategy_cost.h"

namespace hdps {

struct ParallelSpec;

// Blocks first, each by its level; then the rest: under hybrid_parallel it has no choice, under
// semi_auto_parallel it is propagated from the pins, under auto_parallel searched as
// parallel.search_mode says. kInvalidArgument where no strategy fits the memory of a worker, with
// what the least one needs.
Result<Strategy> SearchStrategy(const ParallelSpec& parallel, const JobFacts& facts,
                                const StrategyChoices& choices, uint32_t workers);

// The job's layers as the graph that is searched: layers that read one table are one node, because
// they are cut alike.
struct JobPlanGraph {
  PlanGraph graph;
  std::vector<uint32_t> node_of;  // [layers]
};
// `cost` has to live as long as the graph is asked.
JobPlanGraph PlanGraphOf(const JobFacts& facts, const StrategyChoices& choices, uint32_t workers,
                         const StrategyCost& cost);

}  // namespace hdps
