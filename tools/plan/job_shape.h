// What a job asks of machines, in numbers: products, floats and rows an example.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace hdps {

struct Job;

// x [batch, inputs] times W [inputs, units].
struct Product {
  uint32_t inputs = 0, units = 0;
  // Of the inputs, those that are embeddings which the layer may multiply once a distinct row: so
  // many keys an example, of rows of `row_dim`. 0: none.
  uint32_t row_features = 0, row_dim = 0;
  double flops() const { return 2.0 * inputs * units; }  // Of one example, forward.
};

struct JobShape {
  struct Table {
    std::string name;
    uint32_t dim = 0, state_floats = 0;
    size_t row_bytes = 0;   // Weights in their format and state, in memory.
    uint32_t features = 0;  // Keys that an example has in it, one a feature.
    double kept_rows = 0;   // Those seen most, with their state at every worker.
  };
  std::vector<Table> tables;       // Those with keys; the dense one is below.
  std::vector<Product> products;   // The weights of the layers, in their order.
  size_t dense_floats = 0;         // Of all dense tensors, chunks filled up.
  size_t dense_state_floats = 0;   // Of their optimizer.
  uint64_t embedding_floats = 0;   // Pooled rows of an example, over all layers.
  uint64_t activation_floats = 0;  // Outputs of the products of an example.
  uint32_t keys = 0;               // Of an example.
  bool always_on_rows = false;     // Such layers multiply distinct rows, not where it pays.
};

// kInvalidArgument when the layers do not fit together.
Result<JobShape> ShapeOf(const Job& job);

}  // namespace hdps
