// A strategy for people: a table, who holds what, and a picture of the model.
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
  std::string heading;  // StrategyLine().
};

// A line a layer: its split, the layouts of what goes in and comes out, weights a worker, time of a
// step; below it a line for each conversion. Then a line a worker: which parts it has, and bytes.
std::string StrategyText(const StrategyView& view);

// The model as a graph that graphviz draws: a box a layer, coloured by what is cut; edges with
// their conversions, forward and back, and the bytes that leave a worker.
std::string StrategyDot(const StrategyView& view);

}  // namespace hdps
