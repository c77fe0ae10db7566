// The loop that updates rows of a slab and prefetches a few rows ahead; compiled for each
// optimizer.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/host/row_slab.h"
#include "kernels/host/row_update.h"
#include "kernels/host/slab_update.h"

namespace hdps {

inline constexpr size_t kSlabRowsAhead = 8;  // Rows being prefetched.

inline void PrefetchSlabRow(const RowSlab& slab, uint32_t slot, size_t floats) {
  constexpr size_t kLineFloats = 16;
  constexpr size_t kLinesMax = 16;  // The hardware prefetches the rest of a longer row.
  if (slot == kNotInSlab) return;
  const float* row = slab.Row(slot);
  const size_t lines = std::min((floats + kLineFloats - 1) / kLineFloats, kLinesMax);
  for (size_t i = 0; i < lines; ++i) __builtin_prefetch(row + i * kLineFloats);
}

// Scales a gradient; returns whether all `dim` values are finite. Written so that it is vectorized.
inline bool ScaleGradient(const float* __restrict gradient, const RowUpdate& update, size_t dim,
                          float* __restrict scaled) {
  // Only an exponent of all ones (infinities and NaN) carries into the sign bit.
  constexpr uint32_t kExponent = 0x7f800000u, kOne = 0x00800000u, kCarry = 0x80000000u;
  const float part_scale = update.part_scale, scale = update.scale;
  uint32_t bad = 0;
  for (size_t i = 0; i < dim; ++i) {
    const float value = (gradient[i] * part_scale) * scale;
    scaled[i] = value;
    bad |= (std::bit_cast<uint32_t>(value) & kExponent) + kOne;
  }
  return (bad & kCarry) == 0;
}

// Computes what the rule is given for one row; returns whether the scaled gradient was finite.
inline bool FinishOneGradient(const float* gradient, const RowUpdate& update, const float* weights,
                              std::span<float> finished) {
  const bool finite = ScaleGradient(gradient, update, finished.size(), finished.data());
  if (update.finish.none()) return finite;
  for (size_t d = 0; d < finished.size(); ++d) {
    finished[d] = update.finish(finished[d], weights[d]);
  }
  return finite;
}

// UpdateSlabRows for one optimizer.
template <typename Rule>
bool UpdateSlabRowsBy(const RowUpdate& update, std::span<const uint32_t> slots,
                      const float* gradients, size_t first, size_t count, const RowSlab& slab) {
  const OptimizerSettings settings = update.rule;
  const size_t dim = slab.dim, end = first + count;
  RowFactors<Rule> factors(settings, update.step);
  std::vector<float> finished(dim);
  bool finite = true;
  const auto prefetch = [&](size_t i) { PrefetchSlabRow(slab, slots[i], slab.row_floats()); };
  for (size_t i = first; i < std::min(end, first + kSlabRowsAhead); ++i) prefetch(i);
  for (size_t i = first; i < end; ++i) {
    if (i + kSlabRowsAhead < end) prefetch(i + kSlabRowsAhead);
    if (slots[i] == kNotInSlab) continue;
    float* const weights = slab.Row(slots[i]);
    finite &= FinishOneGradient(gradients + i * dim, update, weights, finished);
    UpdateOneRow<Rule>(settings, factors, dim, finished.data(), GradientScale(), weights,
                       weights + dim);
  }
  return finite;
}

}  // namespace hdps
