// Pools embedding rows into features, and splits feature gradients back to rows.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/matrix.h"
#include "kernels/row_spans.h"

namespace hdps {

enum class Pooling : uint8_t;

// A batch of bags in CSR form: bag b owns row_index[offsets[b] .. offsets[b + 1]).
// Requires: offsets never decrease; offsets.back() <= row_index.size().
struct Bags {
  std::span<const uint32_t> offsets;    // [num_bags + 1]
  std::span<const uint32_t> row_index;  // [keys], each < num_rows
  std::span<const float> weights;       // [keys], or empty: all ones

  size_t num_bags() const { return offsets.empty() ? 0 : offsets.size() - 1; }
  // Bags [first, first + count); they share row_index and weights.
  Bags Part(size_t first, size_t count) const {
    return {offsets.subspan(first, count + 1), row_index, weights};
  }
};

// pooled[b, :] = sum of weights[k] * rows[row_index[k], :] over the keys k of bag b, in their
// order; times 1 / (number of keys) under kMean. An empty bag pools to zero. Requires: not kMax.
void PoolBags(const Bags& bags, Pooling pooling,
              const RowSpans<const float>& rows,  // [num_rows, pooled.cols]
              Write write, Matrix pooled);        // [num_bags, dim]

// The rows that one call handles: row i belongs to slice (i / kSliceRows) % count. Slices are
// disjoint, so they can be handled in parallel.
struct RowSlice {
  uint32_t index = 0, count = 1;
};
inline constexpr uint32_t kSliceRows = 16;  // For dim 1 a cache line then belongs to one slice.

// row_gradients[i, :] += weights[k] * gradient[b, :] (times 1 / keys under kMean) for every
// key k with row_index[k] == i, in order of k. Per row the order of addition does not depend on
// the slices.
void PoolBagsBackward(const Bags& bags, Pooling pooling, RowSlice slice,
                      ConstMatrix gradient,                   // [num_bags, dim]
                      const RowSpans<float>& row_gradients);  // [num_rows, dim]
void PoolBagsBackward(const Bags& bags, Pooling pooling, RowSlice slice, Bf16Matrix gradient,
                      const RowSpans<float>& row_gradients);

// Marks an empty bag, which has no largest key.
inline constexpr uint32_t kNoKey = 0xffffffff;

// pooled[b, d] (+)= the largest weights[k] * rows[row_index[k], d] over the keys k of bag b. The
// key is stored in largest[b * dim + d]; of equal ones, the first. An empty bag gives zero and
// kNoKey.
void PoolBagsMax(const Bags& bags, const RowSpans<const float>& rows, Write write, Matrix pooled,
                 uint32_t* largest);

// row_gradients[i, d] += weights[k] * gradient[b, d] for each key k = largest[b * dim + d] of row
// i, in order of b; slices as above.
void PoolBagsMaxBackward(const Bags& bags, const uint32_t* largest, RowSlice slice,
                         ConstMatrix gradient, const RowSpans<float>& row_gradients);
void PoolBagsMaxBackward(const Bags& bags, const uint32_t* largest, RowSlice slice,
                         Bf16Matrix gradient, const RowSpans<float>& row_gradients);

}  // namespace hdps
