// Gathers and updates rows by slot, a few rows ahead of the memory.
#include "kernels/host/row_slab.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "kernels/update_rules.h"

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

// The rule of one weight over a row. With the kind known the loop has no branch.
template <OptimizerKind kKind>
void UpdateAs(OptimizerSpec rule, AdamCorrection correction, size_t dim,
              const float* __restrict gradient, float* __restrict weights, float* __restrict state0,
              float* __restrict state1) {
  rule.kind = kKind;
  for (size_t i = 0; i < dim; ++i) {
    UpdateWeight(rule, correction, gradient[i], weights + i, state0 + i, state1 + i);
  }
}

using UpdateLoop = void (*)(OptimizerSpec, AdamCorrection, size_t, const float*, float*, float*,
                            float*);

UpdateLoop LoopOf(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kSgd:
      return UpdateAs<OptimizerKind::kSgd>;
    case OptimizerKind::kMomentum:
      return UpdateAs<OptimizerKind::kMomentum>;
    case OptimizerKind::kAdagrad:
      return UpdateAs<OptimizerKind::kAdagrad>;
    case OptimizerKind::kFtrl:
      return UpdateAs<OptimizerKind::kFtrl>;
    case OptimizerKind::kAdamW:
      return UpdateAs<OptimizerKind::kAdamW>;
    default:
      return UpdateAs<OptimizerKind::kAdam>;
  }
}

bool CountsUpdates(OptimizerKind kind) {
  return kind == OptimizerKind::kAdam || kind == OptimizerKind::kAdamW;
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
  const OptimizerKind kind = update.rule.kind;
  const UpdateLoop loop = LoopOf(kind);
  AdamCorrection correction;
  if (kind == OptimizerKind::kLazyAdam) correction = CorrectionAfter(update.rule, update.step);
  const size_t dim = slab.dim, end = first + count;
  std::vector<float> scaled(dim);
  bool finite = true;
  const auto prefetch = [&](size_t i) { PrefetchRow(slab, slots[i], slab.row_floats()); };
  for (size_t i = first; i < std::min(end, first + kPrefetch); ++i) prefetch(i);
  for (size_t i = first; i < end; ++i) {
    if (i + kPrefetch < end) prefetch(i + kPrefetch);
    if (slots[i] == kNotInSlab) continue;
    finite &= ScaleGradient(gradients + i * dim, update, dim, scaled.data());
    float* const weights = slab.Row(slots[i]);
    float* const state = weights + dim;
    if (kind == OptimizerKind::kRowwiseAdagrad) {
      const float squares = SumOfSquaresInLanes(scaled.data(), 1, 1, dim);
      const float rate = RowwiseAdagradRate(update.rule, dim, squares, state);
      for (size_t d = 0; d < dim; ++d) weights[d] -= rate * scaled[d];
      continue;
    }
    if (CountsUpdates(kind)) correction = CountUpdate(update.rule, state + 2 * dim);
    loop(update.rule, correction, dim, scaled.data(), weights, state,
         slab.state_floats >= 2 * dim ? state + dim : state);
  }
  return finite;
}

}  // namespace hdps
