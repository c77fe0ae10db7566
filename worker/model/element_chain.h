// Batch normalization, activations and dropout: layers that work on single elements, joined where
// they stand one behind the other, so that each pass over a matrix does the work of all of them.
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

// The parts of a chain, in their order.
struct ChainParts {
  struct Norm {
    size_t gain = 0, bias = 0;                      // First floats in the flat array,
    size_t running_mean = 0, running_variance = 0;  // as of these.
    float epsilon = 0;
    bool over_batch = false;  // Of all lanes and workers, not of the part alone.
  };
  struct Dropping {
    uint64_t stream = 0;
    double rate = 0;
  };
  std::optional<Norm> norm;
  Activation activation = Activation::kNone;
  std::optional<Dropping> dropout;
};

// Of the place it is made for; the input is that of its first part.
std::unique_ptr<Layer> NewElementChain(uint32_t place, const Place& self, const ChainParts& parts,
                                       DenseOps& ops);

// Makes one layer of those that stand one behind the other and are read by nobody else; what it
// reads shares its memory where nobody needs both. The layers are those of all places.
void JoinChains(const Job& job, std::vector<Place>& places,
                std::vector<std::unique_ptr<Layer>>& layers);

}  // namespace hdps
