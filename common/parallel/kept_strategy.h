// A strategy as its file keeps it, with the model that it was made for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/parallel/strategy.h"

namespace hdps {

// Invariant: there are as many names and kinds as layers in the strategy.
struct KeptStrategy {
  std::string path;    // Path of the file, for messages.
  uint64_t graph = 0;  // GraphHash() of the model, see common/planning/layer_facts.h.
  std::vector<std::string> names, kinds;
  Strategy strategy;
  friend bool operator==(const KeptStrategy&, const KeptStrategy&) = default;
};

}  // namespace hdps
