// Sums of rows picked by index, a tile of columns at a time: what a first layer on unique rows does
// in place of its products.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/matrix.h"

namespace hdps {

// Columns of a tile: 4 cache lines a row. A tile of a batch and the rows it picks from stay in a
// core's caches, where whole rows would not.
inline constexpr size_t kGatherTile = 64;

// One row for each i.
struct GatherSource {
  const float* rows = nullptr;      // Row r begins at rows + r * stride.
  const uint32_t* index = nullptr;  // [count]
};

// Any number of rows for each i: entries [begin[i], begin[i + 1]).
struct GatherSegments {
  std::span<const uint32_t> begin;  // [count + 1]
  const uint32_t* index = nullptr;  // [entries + kGatherAhead], the last ones any row.
  const float* factors = nullptr;   // [entries], or null: all ones.
  size_t count() const { return begin.size() - 1; }
};
inline constexpr size_t kGatherAhead = 12;  // Entries fetched ahead.

// The loops below, for the widest vectors of this machine. Each float is the same sum in the same
// order whatever the width, without fused multiply-add, so the bits are the same. `stride` is that
// of the rows picked from; sum is [count, kGatherTile] without gaps.
struct GatherLoops {
  // sum[i, :] += sources[0].rows[index[i], :] + ..., added one source after the other.
  void (*add_sources)(std::span<const GatherSource> sources, size_t stride, size_t count,
                      float* sum);
  // sum[i, :] (+)= factors[e] * rows[index[e], :] for the entries e of i, in their order; kOver
  // begins at +0.0.
  void (*add_segments)(const GatherSegments& segments, Write write, const float* rows,
                       size_t stride, float* sum);
};
GatherLoops GatherLoopsOfThisMachine();
GatherLoops PlainGatherLoops();  // The specification.

}  // namespace hdps
