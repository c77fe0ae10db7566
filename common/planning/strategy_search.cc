// Propagation and search over the abstract graph of a job.
#include "common/planning/strategy_search.h"

namespace hdps {

Result<Strategy> SearchStrategy(const ParallelSpec&, const JobFacts&,
                                const StrategyChoices& choices, uint32_t workers) {
  Strategy strategy{workers, {}};
  for (const auto& splits : choices.splits) strategy.layers.push_back(splits[0]);
  return strategy;
}

}  // namespace hdps
