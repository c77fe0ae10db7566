// Gathers and updates rows by slot, a few rows ahead of the memory.
#include "kernels/host/row_slab.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "kernels/host/row_update.h"

namespace hdps {
namespace {

constexpr size_t kPrefetch = 8;           // Rows on their way from memory.
constexpr size_t kPrefetchLinesMax = 16;  // The hardware catches the rest of a longer row.
constexpr size_t kLineFloats = 16;

void PrefetchRow(const RowSlab& slab, uint32_t slot, size_t floats) {
  if (slot == kNotInSlab) return;
  const float* row = slab.Row(slot);
  const size_t lines = std::min((floats + kLineFloats - 1) / kLineFloats, kPrefetchLinesMax);
  for (size_t i = 0; i < lines; ++i) __builtin_prefetch(row + i * kLineFloats);
}

// Whether every one of the `dim` scaled values is finite; written so that it becomes vectors.
bool ScaleGradient(const float* __restrict gradient, const RowUpdate& update, size_t dim,
                   float* __restrict scaled) {
  // Only an exponent of all ones, of infinities and what is no number, carries into the sign's bit.
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

// UpdateSlabRows under one optimizer.
template <typename Rule>
bool UpdateRowsBy(const RowUpdate& update, std::span<const uint32_t> slots, const float* gradients,
                  size_t first, size_t count, const RowSlab& slab) {
  const OptimizerSettings settings = update.rule;
  const size_t dim = slab.dim, end = first + count;
  RowFactors<Rule> factors(settings, update.step);
  std::vector<float> scaled(dim);
  bool finite = true;
  const auto prefetch = [&](size_t i) { PrefetchRow(slab, slots[i], slab.row_floats()); };
  for (size_t i = first; i < std::min(end, first + kPrefetch); ++i) prefetch(i);
  for (size_t i = first; i < end; ++i) {
    if (i + kPrefetch < end) prefetch(i + kPrefetch);
    if (slots[i] == kNotInSlab) continue;
    finite &= ScaleGradient(gradients + i * dim, update, dim, scaled.data());
    float* const weights = slab.Row(slots[i]);
    UpdateOneRow<Rule>(settings, factors, dim, scaled.data(), GradientScale(), weights,
                       weights + dim);
  }
  return finite;
}

}  // namespace

void GatherSlabRows(const RowSlab& slab, std::span<const uint32_t> slots, const float* outside,
                    size_t first, size_t count, float* rows) {
  const size_t dim = slab.dim, end = first + count;
  for (size_t i = first; i < std::min(end, first + kPrefetch); ++i)
    PrefetchRow(slab, slots[i], dim);
  for (size_t i = first; i < end; ++i) {
    if (i + kPrefetch < end) PrefetchRow(slab, slots[i + kPrefetch], dim);
    const bool inside = slots[i] != kNotInSlab;
    if (!inside && rows == outside) continue;
    const float* from = inside ? slab.Row(slots[i]) : outside + i * dim;
    std::memcpy(rows + i * dim, from, dim * sizeof(float));
  }
}

bool UpdateSlabRows(const RowUpdate& update, std::span<const uint32_t> slots,
                    const float* gradients, size_t first, size_t count, const RowSlab& slab) {
  bool finite = true;
  WithRowOptimizer(update.rule.kind, [&](auto rule) {
    finite = UpdateRowsBy<decltype(rule)>(update, slots, gradients, first, count, slab);
  });
  return finite;
}

}  // namespace hdps
