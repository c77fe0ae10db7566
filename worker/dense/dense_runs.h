// Where dense tensors lie: the keys of their chunks, and their floats in the model's flat array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "worker/model/model.h"

namespace hdps {

struct Job;

// Returns the keys of the chunks of a model's flat dense array, in order.
std::vector<Key> DenseKeys(const std::vector<DenseTensor>& tensors);
// The same of some tensors, by their ascending numbers.
std::vector<Key> DenseKeys(const std::vector<DenseTensor>& tensors,
                           std::span<const uint32_t> members);

// A range of floats in a model's flat array.
struct FloatRun {
  size_t begin = 0, size = 0;
};

// Returns the floats of a tensor in the flat array, including the padding of its last chunk.
FloatRun RunOf(const DenseTensor& tensor);
// Returns the floats of some tensors, ascending; adjacent ranges are joined.
std::vector<FloatRun> RunsOf(const std::vector<DenseTensor>& tensors,
                             std::span<const uint32_t> members);

// Returns for each tensor whether servers keep and update it.
std::vector<bool> HeldByServers(const Job& job, const std::vector<DenseTensor>& tensors);

}  // namespace hdps
