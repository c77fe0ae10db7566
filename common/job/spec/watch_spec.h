// What a job does when the figures of its evaluations get no better.
#pragma once

#include <cstdint>
#include <string>

namespace hdps {

// A figure of an evaluation that something depends on.
struct WatchSpec {
  std::string metric = "auc";
  std::string set;        // Name of the evaluation set; empty: the first.
  uint32_t patience = 0;  // Evaluations without a better figure that are borne; 0: nothing is done.
  double min_delta = 0;   // A figure counts as better when it is by more than this.
  friend bool operator==(const WatchSpec&, const WatchSpec&) = default;
};

// The learning rates fall when the figure stands.
struct PlateauSpec : WatchSpec {
  double factor = 0.1;  // What they are multiplied with.
  double least = 0;     // The product of the factors stays above.
  friend bool operator==(const PlateauSpec&, const PlateauSpec&) = default;
};

}  // namespace hdps
