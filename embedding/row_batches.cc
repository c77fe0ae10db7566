// One source for every vector width: loops that are inlined into three copies of their callers.
#include "embedding/row_batches.h"

#include <glog/logging.h>

namespace hdps {
namespace {

HDPS_INLINE void CopyFloats(const float* from, size_t count, float* to) {
  constexpr size_t kLanes = 16;
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    *reinterpret_cast<SixteenFloats*>(to + i) = *reinterpret_cast<const SixteenFloats*>(from + i);
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

HDPS_INLINE void ReadAll(const Reading& r) {
  const size_t row_floats = r.row_floats;
  float* const out = r.out;
  r.store.ForEachFound(
      r.keys, row_floats * sizeof(float),
      [&](size_t k, const RowSlot*, const std::byte* row) __attribute__((always_inline)) {
        if (row != nullptr) [[likely]] {
          CopyFloats(reinterpret_cast<const float*>(row), row_floats, out + k * row_floats);
        } else {
          r.initial(r.keys[k], {out + k * row_floats, row_floats});
        }
      });
}

void ReadPlain(const Reading& r) { ReadAll(r); }
HDPS_AVX2 void ReadAvx2(const Reading& r) { ReadAll(r); }
HDPS_AVX512 void ReadAvx512(const Reading& r) { ReadAll(r); }

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

// kDim: 0, or the dim known when this is compiled.
template <OptimizerKind kRule, size_t kDim>
HDPS_INLINE void UpdateAll(const Updating& u) {
  const OptimizerSpec spec = u.spec;
  const GradientScale scale = u.scale;
  const size_t dim = kDim > 0 ? kDim : u.dim;
  const size_t row_floats = u.store.row_bytes() / sizeof(float);
  const float* const values = u.values;
  Corrections corrections(spec);
  const BiasCorrection at_step = CorrectionAt(spec, u.step);
  u.store.ForEachMade(
      u.keys, RowVersion(u.step),
      [&](Key key, std::byte* row) {
        u.initial(key, {reinterpret_cast<float*>(row), row_floats});
      },
      [&](size_t k, std::byte * row) __attribute__((always_inline)) {
        float* const w = reinterpret_cast<float*>(row);
        UpdateRowBy<kRule>(spec, at_step, corrections, dim, values + k * dim, scale, w, w + dim);
      });
}

template <OptimizerKind kRule, size_t kDim>
void UpdatePlain(const Updating& u) {
  UpdateAll<kRule, kDim>(u);
}
template <OptimizerKind kRule, size_t kDim>
HDPS_AVX2 void UpdateAvx2(const Updating& u) {
  UpdateAll<kRule, kDim>(u);
}
template <OptimizerKind kRule, size_t kDim>
HDPS_AVX512 void UpdateAvx512(const Updating& u) {
  UpdateAll<kRule, kDim>(u);
}

template <OptimizerKind kRule, size_t kDim>
void UpdateWide(VectorWidth width, const Updating& u) {
  switch (width) {
    case VectorWidth::kPlain:
      return UpdatePlain<kRule, kDim>(u);
    case VectorWidth::kAvx2:
      return UpdateAvx2<kRule, kDim>(u);
    case VectorWidth::kAvx512:
      return UpdateAvx512<kRule, kDim>(u);
  }
}

template <OptimizerKind kRule>
void UpdateBy(VectorWidth width, const Updating& u) {
  // A wide part has rows of one weight: there a loop costs more than what it does.
  return u.dim == 1 ? UpdateWide<kRule, 1>(width, u) : UpdateWide<kRule, 0>(width, u);
}

}  // namespace

void ReadRows(VectorWidth width, const RowStore& store, std::span<const Key> keys,
              uint32_t row_floats, const RowMaker& initial, float* out) {
  const Reading reading{store, keys, row_floats, initial, out};
  switch (width) {
    case VectorWidth::kPlain:
      return ReadPlain(reading);
    case VectorWidth::kAvx2:
      return ReadAvx2(reading);
    case VectorWidth::kAvx512:
      return ReadAvx512(reading);
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
