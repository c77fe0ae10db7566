// Shows a strategy: as a table, by worker, and as a picture of the model.
#pragma once

#include <string>
#include <vector>

#include "common/parallel/step_rates.h"
#include "common/planning/layer_facts.h"

namespace hdps {

struct StrategyView {
  const JobFacts& facts;
  const Strategy& strategy;
  const StepRates& rates;
  std::string heading;  // From StrategyLine().
};

// Returns one line for each layer: its split, the layouts of its inputs and output, weights per
// worker and time per step. A line for each conversion follows its layer. At the end each worker
// has a line with its parts and bytes.
std::string StrategyText(const StrategyView& view);

// Returns the model as a graph for graphviz: one box per layer, colored by what is cut; edges show
// their conversions, forward and backward, and the bytes that leave a worker.
std::string StrategyDot(const StrategyView& view);

}  // namespace hdps
