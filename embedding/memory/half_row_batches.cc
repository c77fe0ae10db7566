// Rows whose weights have 16 bits: made wide, updated as any other, rounded at random.
#include <glog/logging.h>

#include <cstring>
#include <vector>

#include "embedding/memory/row_batches.h"
#include "embedding/memory/weight_format.h"

namespace hdps {
namespace {

// The longest row that is made wide on the stack; longer ones take a heap.
constexpr size_t kStackFloats = 256;

// ---- Reading -----------------------------------------------------------------------------------

struct Reading {
  const HalfRows& rows;
  std::span<const Key> keys;
  float* const out;
};

// kDim: 0, or the dim known when this is compiled.
template <WeightFormat kFormat, size_t kDim>
HDPS_INLINE void ReadAll(const Reading& r) {
  const size_t dim = kDim > 0 ? kDim : r.rows.dim;
  float* const out = r.out;
  const RowStore& store = r.rows.store;
  MissingRows missing(r.rows.initial, dim);
  store.ForEachFound<WeightBytes(kFormat, kDim)>(
      r.keys, WeightBytes(kFormat, dim),
      [&](size_t k, const RowSlot*, const std::byte* row) __attribute__((always_inline)) {
        if (row != nullptr) [[likely]] {
          LoadWeights<kFormat>(row, dim, out + k * dim);
        } else {
          missing.Add(r.keys[k], out + k * dim);
        }
      });
}

template <WeightFormat kFormat, size_t kDim>
void ReadWide(VectorWidth width, const Reading& r) {
  WithVectors(
      width, [&]() __attribute__((always_inline)) { ReadAll<kFormat, kDim>(r); });
}

template <WeightFormat kFormat>
void ReadIn(VectorWidth width, const Reading& r) {
  switch (r.rows.dim) {
    case 16:
      return ReadWide<kFormat, 16>(width, r);
    case 64:
      return ReadWide<kFormat, 64>(width, r);
    case 80:
      return ReadWide<kFormat, 80>(width, r);
    default:
      return ReadWide<kFormat, 0>(width, r);
  }
}

// ---- Updating ----------------------------------------------------------------------------------

struct Updating {
  const OptimizerSpec& spec;
  const HalfRows& rows;
  std::span<const Key> keys;
  const float* const values;
  const GradientScale scale;
  const int64_t step;
};

// kDim: 0, or the dim known when this is compiled; then a row holds nothing but weights and state.
template <OptimizerKind kRule, WeightFormat kFormat, size_t kDim>
HDPS_INLINE void UpdateAll(const Updating& u) {
  constexpr size_t kRowBytes =
      kDim > 0 ? WeightBytes(kFormat, kDim) + StateFloatsOf(kRule, kDim) * sizeof(float) : 0;
  const OptimizerSpec spec = u.spec;
  const GradientScale scale = u.scale;
  const size_t dim = kDim > 0 ? kDim : u.rows.dim;
  const float* const values = u.values;
  RowStore& store = u.rows.store;
  const size_t weight_bytes = WeightBytes(kFormat, dim);
  float on_stack[kDim > 0 ? kDim : kStackFloats];
  std::vector<float> on_heap(kDim == 0 && dim > kStackFloats ? dim : 0);
  float* const wide = kDim == 0 && dim > kStackFloats ? on_heap.data() : on_stack;
  Corrections corrections(spec);
  const BiasCorrection at_step = CorrectionAt(spec, u.step);
  store.ForEachMade<kRowBytes>(
      u.keys, RowVersion(u.step),
      [&](std::span<const Key> keys, std::byte* const* rows) { MakeHalfRows(u.rows, keys, rows); },
      [&](size_t k, std::byte * row) __attribute__((always_inline)) {
        LoadWeights<kFormat>(row, dim, wide);
        UpdateRowBy<kRule>(spec, at_step, corrections, dim, values + k * dim, scale, wide,
                           reinterpret_cast<float*>(row + weight_bytes));
        const uint64_t seed = RowRoundingSeed(u.rows.rounding_seed, u.keys[k], u.step);
        RoundWeights<kFormat>(wide, dim, seed, row);
      });
}

template <OptimizerKind kRule, WeightFormat kFormat, size_t kDim>
void UpdateWide(VectorWidth width, const Updating& u) {
  WithVectors(
      width, [&]() __attribute__((always_inline)) { UpdateAll<kRule, kFormat, kDim>(u); });
}

// The usual dims under the usual rules are known to the loops: each is three copies of the code.
template <OptimizerKind kRule, WeightFormat kFormat>
void UpdateIn(VectorWidth width, const Updating& u) {
  constexpr bool kOften =
      kRule == OptimizerKind::kRowwiseAdagrad || kRule == OptimizerKind::kLazyAdam;
  const size_t dim = u.rows.dim;
  const size_t plain_bytes = WeightBytes(kFormat, dim) + StateFloatsOf(kRule, dim) * sizeof(float);
  if constexpr (kOften) {
    switch (u.rows.store.row_bytes() == plain_bytes ? dim : 0) {
      case 16:
        return UpdateWide<kRule, kFormat, 16>(width, u);
      case 64:
        return UpdateWide<kRule, kFormat, 64>(width, u);
      case 80:
        return UpdateWide<kRule, kFormat, 80>(width, u);
      default:
        break;
    }
  }
  return UpdateWide<kRule, kFormat, 0>(width, u);
}

template <OptimizerKind kRule>
void UpdateBy(VectorWidth width, const Updating& u) {
  return u.rows.format == WeightFormat::kFp16 ? UpdateIn<kRule, WeightFormat::kFp16>(width, u)
                                              : UpdateIn<kRule, WeightFormat::kBf16>(width, u);
}

}  // namespace

void ReadHalfRows(VectorWidth width, const HalfRows& rows, std::span<const Key> keys, float* out) {
  CHECK(rows.format != WeightFormat::kFp32);
  const Reading reading{rows, keys, out};
  return rows.format == WeightFormat::kFp16 ? ReadIn<WeightFormat::kFp16>(width, reading)
                                            : ReadIn<WeightFormat::kBf16>(width, reading);
}

void UpdateHalfRows(VectorWidth width, const OptimizerSpec& spec, const HalfRows& rows,
                    std::span<const Key> keys, const float* values, GradientScale scale,
                    int64_t step) {
  CHECK(rows.format != WeightFormat::kFp32);
  const Updating updating{spec, rows, keys, values, scale, step};
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

// Made as floats, then written.
void MakeHalfRows(const HalfRows& rows, std::span<const Key> keys, std::byte* const* at) {
  const size_t weight_bytes = WeightBytes(rows.format, rows.dim);
  const size_t floats = rows.dim + (rows.store.row_bytes() - weight_bytes) / sizeof(float);
  std::vector<float> made(keys.size() * floats);
  std::vector<std::byte*> made_at;
  for (size_t k = 0; k < keys.size(); ++k) {
    made_at.push_back(reinterpret_cast<std::byte*>(&made[k * floats]));
  }
  rows.initial(keys, floats, made_at.data());
  for (size_t k = 0; k < keys.size(); ++k) {
    WriteRow(rows.format, rows.dim, {&made[k * floats], floats}, at[k]);
  }
}

void ReadRow(WeightFormat format, uint32_t dim, const std::byte* row, std::span<float> floats) {
  ReadWeights(format, row, floats.first(dim));
  const std::span<float> state = floats.subspan(dim);
  if (!state.empty()) {
    std::memcpy(state.data(), row + WeightBytes(format, dim), state.size_bytes());
  }
}

void WriteRow(WeightFormat format, uint32_t dim, std::span<const float> floats, std::byte* row) {
  WriteWeights(format, floats.first(dim), row);
  const std::span<const float> state = floats.subspan(dim);
  if (!state.empty()) {
    std::memcpy(row + WeightBytes(format, dim), state.data(), state.size_bytes());
  }
}

}  // namespace hdps
