// Counts what one example of a job costs: products, floats and rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace hdps {

struct Job;

// The product of x [batch, inputs] and W [inputs, units] in a layer.
struct Product {
  uint32_t inputs = 0, units = 0;
  // If the layer may multiply each distinct embedding row once: the number of such keys in an
  // example and the dim of their rows. 0: it may not.
  uint32_t row_features = 0, row_dim = 0;
  double flops() const { return 2.0 * inputs * units; }  // Forward, one example.
};

struct JobShape {
  struct Table {
    std::string name;
    uint32_t dim = 0, state_floats = 0;
    size_t row_bytes = 0;  // Weights in their memory format, and optimizer state.
    // Features that read the table; an example has one key for each.
    uint32_t features = 0;
    // Most frequent rows that every worker keeps with their state.
    double kept_rows = 0;
  };
  std::vector<Table> tables;      // Tables with keys; the dense table is not here.
  std::vector<Product> products;  // The weights of the layers, in layer order.
  size_t dense_floats = 0;        // All dense tensors, with padding to whole chunks.
  size_t dense_state_floats = 0;  // Optimizer state of the dense tensors.
  // Under allreduce: of the tensors that servers keep all the same (dense_exchange of a layer).
  size_t floats_left_at_servers = 0;
  // Pooled embeddings of an example, summed over all layers.
  uint64_t embedding_floats = 0;
  uint64_t activation_floats = 0;  // Outputs of all products for an example.
  uint32_t keys = 0;               // Keys of an example.
  // Layers with `row_features` always multiply distinct rows, also where it does not pay.
  bool always_on_rows = false;
};

// Returns kInvalidArgument if the layers do not fit together.
Result<JobShape> ShapeOf(const Job& job);

}  // namespace hdps
