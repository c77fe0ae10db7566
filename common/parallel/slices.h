// The part of a tensor that a rank has if the tensor's axes are cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/parallel/layout.h"

namespace hdps {

// Returns the slice of rank `rank` of a tensor [shape] whose axes are cut into strategy[axis]
// parts, one Cut for each axis. A rank's digits, the first axis the highest, are its parts; the
// slices of all ranks are disjoint and together make the tensor. Requires: shape and strategy have
// the same size, no axis has 0 parts, and rank is below the product of the parts.
std::vector<Cut> SliceOf(std::span<const size_t> shape, std::span<const uint32_t> strategy,
                         uint32_t rank);

// Returns the number of elements in a slice.
size_t SizeOf(std::span<const Cut> slice);

// Copies a slice out of `tensor` [shape] to `part` [SizeOf(slice)], and back; in both the last axis
// varies fastest. Requires: the slice is inside the tensor.
void TakeSlice(std::span<const size_t> shape, std::span<const Cut> slice, const float* tensor,
               float* part);
void PutSlice(std::span<const size_t> shape, std::span<const Cut> slice, const float* part,
              float* tensor);

// The order of a tensor's elements in which one axis goes before all others, so that a cut of that
// axis is a run of elements. The default is the order of the tensor itself.
struct AxisFirst {
  size_t blocks = 1;                             // Product of the extents before the axis.
  size_t unit = 1;                               // Product of the extents behind it.
  size_t each() const { return blocks * unit; }  // Number of elements for one index of the axis.
  // Returns the index of element `at` of this order in the tensor of `size` elements, whose last
  // axis varies fastest.
  size_t IndexOf(size_t at, size_t size) const {
    const size_t index = at / each(), block = at / unit % blocks;
    return (block * (size / each()) + index) * unit + at % unit;
  }
  friend bool operator==(const AxisFirst&, const AxisFirst&) = default;
};

// Returns what is wrong with the tuples of parallel.dataset_strategy for a number of workers (0 if
// unknown); empty if nothing. Inputs are matrices, and each may be cut along one axis at most, into
// one part for each worker. If the last input is of images, `image` has their axes, and its tuple
// may have one part for each of them; else `image` is empty.
std::string ProblemOfSlices(const std::vector<std::vector<uint32_t>>& tuples, uint32_t workers,
                            const std::vector<uint32_t>& image = {});

}  // namespace hdps
