// Estimates the cost of a strategy: seconds of a step, bytes sent, bytes of memory.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

#include "common/parallel/step_rates.h"
#include "common/planning/layer_facts.h"

namespace hdps {

// The cost of one layer on the slowest worker.
struct LayerCost {
  double compute_seconds = 0;  // Forward and backward; includes the transfer of rows.
  // Reduction of its gradients over the parts of the examples, or their way to the servers and that
  // of the weights back.
  double reduce_seconds = 0;
  double update_seconds = 0;
  double memory_bytes = 0;  // Weights, gradients, optimizer state, and values with their gradients.
  double weight_floats = 0;
  double seconds() const { return compute_seconds + reduce_seconds + update_seconds; }
};

// The cost of a conversion between a layer and one that reads it: forward for values, backward for
// their gradient. Bytes are those that a worker sends, averaged over the workers.
struct ConversionCost {
  const char* forward = "none";
  const char* backward = "none";
  double forward_bytes = 0, backward_bytes = 0;
  double seconds = 0;
};

// The index of the loss in place of a reading layer. The loss needs every worker's own rows.
inline constexpr size_t kLoss = SIZE_MAX;

// Estimates costs. Caches conversions between layouts, so it must be used by one thread.
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
    double share = 0;  // Share of the matrix's floats that a worker sends.
    double exchanges = 0;
  };
  struct Ways {
    Way forward, backward;
  };
  // The kind of cut (one more value stands for the loss) and the split, for each side.
  using WayKey = std::array<uint32_t, 8>;
  struct HashOfKey {
    size_t operator()(const WayKey& key) const;
  };
  const Ways& WaysOf(const WayKey& key, LayerCut from, const LayerSplit& from_split,
                     const LayerCut* to, const LayerSplit& to_split) const;
  // Returns the conversions inside a dense layer with cut inputs: from its summands to the sum, and
  // of the gradient back.
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
  double memory_bytes = 0;  // Memory of one worker.
};
StrategyTotal TotalOf(const JobFacts& facts, const Strategy& strategy, const StepRates& rates);

}  // namespace hdps
