// Sums of rows picked by index, one tile of columns at a time: replaces the products of a first
// layer on distinct rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/matrix.h"

namespace hdps {

// Columns of a tile: 4 cache lines a row. A tile of a batch and of the rows it picks from stays in
// a core's caches; whole rows would not.
inline constexpr size_t kGatherTile = 64;

// A source with one row for each i.
struct GatherSource {
  const float* rows = nullptr;      // Row r begins at rows + r * stride.
  const uint32_t* index = nullptr;  // [count]
};

// A source with any number of rows for each i: entries [begin[i], begin[i + 1]).
struct GatherSegments {
  std::span<const uint32_t> begin;  // [count + 1]
  const uint32_t* index = nullptr;  // [entries + kGatherAhead]; the last ones may be any row.
  const float* factors = nullptr;   // [entries], or null: all ones.
  size_t count() const { return begin.size() - 1; }
};
inline constexpr size_t kGatherAhead = 12;  // Entries fetched ahead.

// Loops for the widest vectors of this machine. Each float is the same sum in the same order at
// every width, without fused multiply-add, so the bits are the same. `stride` is that of the rows
// picked from; sum is [count, kGatherTile] without gaps.
struct GatherLoops {
  // sum[i, :] += sources[0].rows[index[i], :] + ..., one source after the other.
  void (*add_sources)(std::span<const GatherSource> sources, size_t stride, size_t count,
                      float* sum);
  // sum[i, :] (+)= factors[e] * rows[index[e], :] for the entries e of i, in their order; kOver
  // starts at +0.0.
  void (*add_segments)(const GatherSegments& segments, Write write, const float* rows,
                       size_t stride, float* sum);
};
GatherLoops GatherLoopsOfThisMachine();
GatherLoops PlainGatherLoops();  // The specification.

}  // namespace hdps
