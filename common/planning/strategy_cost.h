// What a strategy costs: seconds of a step, bytes on the way, bytes of memory.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

#include "common/parallel/step_rates.h"
#include "common/planning/layer_facts.h"

namespace hdps {

// Of one layer, at the slowest worker.
struct LayerCost {
  double compute_seconds = 0;  // Forward and backward; of rows, from the servers and to them.
  double reduce_seconds = 0;   // Its tensors' gradients, over the parts of the examples.
  double update_seconds = 0;
  double memory_bytes = 0;  // Weights, gradients, state; values and their gradients.
  double weight_floats = 0;
  double seconds() const { return compute_seconds + reduce_seconds + update_seconds; }
};

// From one layer to one that reads it, forth, and of the gradient back. Bytes leave a worker, the
// mean over the workers.
struct ConversionCost {
  const char* forward = "none";
  const char* backward = "none";
  double forward_bytes = 0, backward_bytes = 0;
  double seconds = 0;
};

// In place of a layer that reads: the loss, which wants every worker's own rows.
inline constexpr size_t kLoss = SIZE_MAX;

// Keeps what it has found of conversions between two layouts, so it is for one thread.
class StrategyCost {
 public:
  StrategyCost(const JobFacts& facts, uint32_t workers, const StepRates& rates)
      : facts_(facts), workers_(workers), rates_(rates) {}

  LayerCost OfLayer(size_t layer, const LayerSplit& split) const;
  ConversionCost OfConversion(size_t from, const LayerSplit& from_split, size_t to,
                              const LayerSplit& to_split) const;

 private:
  struct Way {
    const char* name = "none";
    double share = 0;  // Of the matrix's floats, what a worker sends.
    double exchanges = 0;
  };
  struct Ways {
    Way forward, backward;
  };
  // Of both sides: the cut (one more for the loss), and the split.
  using WayKey = std::array<uint32_t, 8>;
  struct HashOfKey {
    size_t operator()(const WayKey& key) const;
  };
  const Ways& WaysOf(const WayKey& key, LayerCut from, const LayerSplit& from_split,
                     const LayerCut* to, const LayerSplit& to_split) const;
  // Of a dense layer with parts of its inputs: its summands to the sum, and the gradient back.
  const Ways& SumsOf(const LayerSplit& split) const;
  static Way WayOf(const Layout& at, const Layout& wanted);
  double Seconds(const Way& way, double bytes) const;

  const JobFacts& facts_;
  const uint32_t workers_;
  const StepRates rates_;
  mutable std::unordered_map<WayKey, Ways, HashOfKey> ways_;
};

struct StrategyTotal {
  double seconds = 0;
  double memory_bytes = 0;  // Of one worker.
};
StrategyTotal TotalOf(const JobFacts& facts, const Strategy& strategy, const StepRates& rates);

}  // namespace hdps
