// Which part of a tensor a worker has, where its axes are cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/parallel/layout.h"

namespace hdps {

// The part of rank `rank` of a tensor [shape] whose axes are cut into strategy[axis] parts: a cut
// an axis. A rank's digits, the first axis the highest, are its parts; slices of all ranks are
// disjoint, and together the tensor. Requires: shape and strategy are of one size, no axis has 0
// parts, and rank is below the product of the parts.
std::vector<Cut> SliceOf(std::span<const size_t> shape, std::span<const uint32_t> strategy,
                         uint32_t rank);

// Elements of a slice.
size_t SizeOf(std::span<const Cut> slice);

// A tensor's slice, both with the last axis the fastest: from the tensor [shape] to `part`
// [SizeOf(slice)], and back to its place. Requires: the slice is inside the tensor.
void TakeSlice(std::span<const size_t> shape, std::span<const Cut> slice, const float* tensor,
               float* part);
void PutSlice(std::span<const size_t> shape, std::span<const Cut> slice, const float* part,
              float* tensor);

// What is wrong with the tuples of parallel.dataset_strategy for so many workers (0: not known);
// empty: nothing. Inputs are matrices; of each at most one axis is cut, into a part a worker.
std::string ProblemOfSlices(const std::vector<std::vector<uint32_t>>& tuples, uint32_t workers);

}  // namespace hdps
