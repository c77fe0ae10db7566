// Says which figure of the evaluations ends a job early, or lowers its learning rates.
#pragma once

#include <cstdint>
#include <string>

namespace hdps {

// A figure of evaluations that controls something.
struct WatchSpec {
  std::string metric = "auc";
  std::string set;        // Name of the evaluation set; empty for the first.
  uint32_t patience = 0;  // Evaluations without improvement before it acts; 0 for never.
  double min_delta = 0;   // A figure counts as better only by more than this.
  friend bool operator==(const WatchSpec&, const WatchSpec&) = default;
};

// Lowers the learning rates when the figure no longer improves.
struct PlateauSpec : WatchSpec {
  double factor = 0.1;  // Factor on the learning rates.
  double least = 0;     // Lower bound on the product of the factors.
  friend bool operator==(const PlateauSpec&, const PlateauSpec&) = default;
};

}  // namespace hdps
