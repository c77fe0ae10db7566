// The job's layers as a graph of places, checked and measured.
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

// Invariant: places, layers and Job::model.layers have one order; inputs stand before their
// consumers, and the last place gives the logits.
struct Graph {
  std::vector<Place> places;
  std::vector<std::unique_ptr<Layer>> layers;
  std::vector<uint32_t> first_tensor;  // [layers + 1]: tensors of layer i begin here.
  std::vector<DenseTensor> tensors;
  std::vector<bool> tables_on_host;  // [tables]: see TablesOnHost(); of BuildGraph().
};

// Places and tensors of the job's layers, and nothing that computes. kInvalidArgument names the
// layer and what would be right.
Result<Graph> PlanGraph(const Job& job);
// The same with its layers, made for a device; those that the host computes, for `host`, which may
// be null where there is none of them.
Result<Graph> BuildGraph(const Job& job, DenseOps& ops, DenseOps* host = nullptr);

// Memory for the values and gradients of all places.
class Activations {
 public:
  Activations(DenseOps* ops, size_t num_places);
  // Points every used place at matrices of its rows, [places].
  void Lay(std::span<const size_t> rows, std::vector<Place>& places);

 private:
  void LayValue(size_t rows, std::vector<Place>& places, size_t p);

  std::vector<std::unique_ptr<DeviceArray>> values_, gradients_;  // [places]
};

}  // namespace hdps
