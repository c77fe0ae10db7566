// Builds the job's layers into a graph of places, checked and measured.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "kernels/dense_ops.h"
#include "worker/model/layer.h"

namespace hdps {

struct Job;

// Invariant: places, layers and Job::model.layers have the same order; inputs stand before their
// consumers, and the last place gives the logits.
struct Graph {
  std::vector<Place> places;
  std::vector<std::unique_ptr<Layer>> layers;
  std::vector<uint32_t> first_tensor;  // [layers + 1]: tensors of layer i begin here.
  std::vector<DenseTensor> tensors;
  std::vector<bool> tables_on_host;  // [tables]: see TablesOnHost(); set by BuildGraph().
};

// Makes the places and tensors of the job's layers, without layers that compute. kInvalidArgument
// names the layer and the remedy.
Result<Graph> PlanGraph(const Job& job);
// Makes the same graph with layers for a device; layers that the host computes use `host`, which
// may be null if there are none.
Result<Graph> BuildGraph(const Job& job, DenseOps& ops, DenseOps* host = nullptr);

// Keeps memory for the values and gradients of all places.
class Activations {
 public:
  Activations(DenseOps* ops, size_t num_places);
  // Sets matrices of the given number of rows [places] for every used place.
  void Lay(std::span<const size_t> rows, std::vector<Place>& places);

 private:
  void LayValue(size_t rows, std::vector<Place>& places, size_t p);

  std::vector<std::unique_ptr<DeviceArray>> values_, gradients_;  // [places]
};

}  // namespace hdps
