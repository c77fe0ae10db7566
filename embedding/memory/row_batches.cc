// One source for every vector width: loops that are inlined into three copies of their callers.
#include "embedding/memory/row_batches.h"

#include <glog/logging.h>

namespace hdps {
namespace {

// In stores as wide as the machine has them: lines that are written wait in a short queue, a place
// for each store.
template <VectorWidth kWidth>
HDPS_INLINE void CopyFloats(const float* from, size_t count, float* to) {
  using Vec = typename FloatsOf<kWidth>::Vec;
  constexpr size_t kLanes = sizeof(Vec) / sizeof(float);
  size_t i = 0;
#pragma GCC unroll 8
  for (; i + kLanes <= count; i += kLanes) {
    *reinterpret_cast<Vec*>(to + i) = *reinterpret_cast<const Vec*>(from + i);
  }
  for (; i < count; ++i) to[i] = from[i];
}

// ---- Reading -----------------------------------------------------------------------------------

struct Reading {
  const RowStore& store;
  std::span<const Key> keys;
  const uint32_t row_floats;
  const RowMaker& initial;
  float* const out;
};

// kFloats: 0, or the number of floats known when this is compiled.
template <VectorWidth kWidth, size_t kFloats>
HDPS_INLINE void ReadAll(const Reading& r) {
  const size_t row_floats = kFloats > 0 ? kFloats : r.row_floats;
  float* const out = r.out;
  MissingRows missing(r.initial, row_floats);
  r.store.ForEachFound<kFloats * sizeof(float)>(
      r.keys, row_floats * sizeof(float),
      [&](size_t k, const RowSlot*, const std::byte* row) __attribute__((always_inline)) {
        if (row != nullptr) [[likely]] {
          CopyFloats<kWidth>(reinterpret_cast<const float*>(row), row_floats, out + k * row_floats);
        } else {
          missing.Add(r.keys[k], out + k * row_floats);
        }
      });
}

template <size_t kFloats>
void ReadWide(VectorWidth width, const Reading& r) {
  WithVectors(
      width, [&](auto copy) __attribute__((always_inline)) { ReadAll<copy.width, kFloats>(r); });
}

// ---- Updating ----------------------------------------------------------------------------------

struct Updating {
  const OptimizerSpec& spec;
  const uint32_t dim;
  RowStore& store;
  std::span<const Key> keys;
  const float* const values;
  const GradientScale scale;
  const int64_t step;
  const RowMaker& initial;
};

// kDim: 0, or the dim known when this is compiled; then a row holds nothing but weights and state.
template <OptimizerKind kRule, size_t kDim>
HDPS_INLINE void UpdateAll(const Updating& u) {
  const OptimizerSpec spec = u.spec;
  const GradientScale scale = u.scale;
  constexpr size_t kRowFloats = kDim > 0 ? kDim + StateFloatsOf(kRule, kDim) : 0;
  const size_t dim = kDim > 0 ? kDim : u.dim;
  const size_t row_floats = u.store.row_bytes() / sizeof(float);
  const float* const values = u.values;
  Corrections corrections(spec);
  const BiasCorrection at_step = CorrectionAt(spec, u.step);
  u.store.ForEachMade<kRowFloats * sizeof(float)>(
      u.keys, RowVersion(u.step),
      [&](std::span<const Key> keys, std::byte* const* rows) { u.initial(keys, row_floats, rows); },
      [&](size_t k, std::byte * row) __attribute__((always_inline)) {
        float* const w = reinterpret_cast<float*>(row);
        UpdateRowBy<kRule>(spec, at_step, corrections, dim, values + k * dim, scale, w, w + dim);
      });
}

template <OptimizerKind kRule, size_t kDim>
void UpdateWide(VectorWidth width, const Updating& u) {
  WithVectors(
      width, [&]() __attribute__((always_inline)) { UpdateAll<kRule, kDim>(u); });
}

// The usual dims are known to the loops, which then have no loops inside. Not under every rule:
// each is three copies of the code.
template <OptimizerKind kRule>
void UpdateBy(VectorWidth width, const Updating& u) {
  constexpr bool kOften = kRule == OptimizerKind::kSgd || kRule == OptimizerKind::kAdagrad ||
                          kRule == OptimizerKind::kRowwiseAdagrad ||
                          kRule == OptimizerKind::kLazyAdam;
  const bool plain = u.store.row_bytes() == (u.dim + StateFloatsOf(kRule, u.dim)) * sizeof(float);
  // A wide part has rows of one weight: there a loop costs more than what it does.
  if (plain && u.dim == 1) return UpdateWide<kRule, 1>(width, u);
  if constexpr (kOften) {
    switch (plain ? u.dim : 0) {
      case 8:
        return UpdateWide<kRule, 8>(width, u);
      case 16:
        return UpdateWide<kRule, 16>(width, u);
      case 32:
        return UpdateWide<kRule, 32>(width, u);
      case 64:
        return UpdateWide<kRule, 64>(width, u);
      case 80:
        return UpdateWide<kRule, 80>(width, u);
      case 128:
        return UpdateWide<kRule, 128>(width, u);
      default:
        break;
    }
  }
  return UpdateWide<kRule, 0>(width, u);
}

}  // namespace

void ReadRows(VectorWidth width, const RowStore& store, std::span<const Key> keys,
              uint32_t row_floats, const RowMaker& initial, float* out) {
  const Reading reading{store, keys, row_floats, initial, out};
  switch (row_floats) {
    case 1:
      return ReadWide<1>(width, reading);
    case 8:
      return ReadWide<8>(width, reading);
    case 16:
      return ReadWide<16>(width, reading);
    case 32:
      return ReadWide<32>(width, reading);
    case 64:
      return ReadWide<64>(width, reading);
    case 80:
      return ReadWide<80>(width, reading);
    case 128:
      return ReadWide<128>(width, reading);
    default:
      return ReadWide<0>(width, reading);
  }
}

void UpdateRows(VectorWidth width, const OptimizerSpec& spec, uint32_t dim, RowStore& store,
                std::span<const Key> keys, const float* values, GradientScale scale, int64_t step,
                const RowMaker& initial) {
  const Updating updating{spec, dim, store, keys, values, scale, step, initial};
  switch (spec.kind) {
    case OptimizerKind::kSgd:
      return UpdateBy<OptimizerKind::kSgd>(width, updating);
    case OptimizerKind::kMomentum:
      return UpdateBy<OptimizerKind::kMomentum>(width, updating);
    case OptimizerKind::kAdagrad:
      return UpdateBy<OptimizerKind::kAdagrad>(width, updating);
    case OptimizerKind::kRowwiseAdagrad:
      return UpdateBy<OptimizerKind::kRowwiseAdagrad>(width, updating);
    case OptimizerKind::kAdam:
      return UpdateBy<OptimizerKind::kAdam>(width, updating);
    case OptimizerKind::kLazyAdam:
      return UpdateBy<OptimizerKind::kLazyAdam>(width, updating);
    case OptimizerKind::kAdamW:
      return UpdateBy<OptimizerKind::kAdamW>(width, updating);
    case OptimizerKind::kFtrl:
      return UpdateBy<OptimizerKind::kFtrl>(width, updating);
    case OptimizerKind::kLamb:
      break;
  }
  LOG(FATAL) << "LAMB changes whole tensors, not rows";
}

}  // namespace hdps
