// Joins consecutive layers that work on single elements (batch normalization, activation, dropout),
// so that each pass over a matrix does the work of all of them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/job/activation.h"
#include "kernels/row_tasks.h"
#include "worker/model/layer.h"

namespace hdps {

struct Job;

// The parts of a chain, in order.
struct ChainParts {
  struct Norm {
    size_t gain = 0, bias = 0;                      // First floats in the flat array.
    size_t running_mean = 0, running_variance = 0;  // First floats in the flat array.
    float epsilon = 0;
    bool over_batch = false;  // Normalizes over all lanes and workers, not over the part alone.
  };
  struct Dropping {
    uint64_t stream = 0;
    double rate = 0;
  };
  std::optional<Norm> norm;
  Activation activation = Activation::kNone;
  std::optional<Dropping> dropout;
};

// Makes the layer for its `place`; it reads the input of its first part.
std::unique_ptr<Layer> NewElementChain(uint32_t place, const Place& self, const ChainParts& parts,
                                       DenseOps& ops);

// Joins consecutive layers with no other reader into one. The layer shares memory with its input
// if nothing needs both. `layers` stand in the order of all places.
void JoinChains(const Job& job, std::vector<Place>& places,
                std::vector<std::unique_ptr<Layer>>& layers);

}  // namespace hdps
