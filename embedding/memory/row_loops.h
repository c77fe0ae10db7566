// The loops over many rows: one source for every optimizer, weight format and vector width, inlined
// into three copies of their callers and instantiated format by format.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/job/optimizers/optimizer_rule.h"
#include "embedding/memory/row_batches.h"

namespace hdps {

// The arguments of a read of up to RowStore::kBatchKeys rows that were found.
struct RowReading {
  const RowPart& part;
  std::span<const Key> keys;
  const std::byte* const* const rows;  // [keys]: whole rows; null where a key has none.
  float* const out;                    // [keys * dim]
  const size_t reach;                  // How many bytes to prefetch, from the first weight on.
};

// The arguments of an update of up to RowStore::kBatchKeys rows that were found or made.
struct RowUpdating {
  const OptimizerSpec& spec;
  const RowPart& part;
  std::span<const Key> keys;
  std::byte* const* const rows;  // [keys]: whole rows.
  const float* const values;
  const GradientScale scale;
  const int64_t step;
};

template <WeightFormat kFormat>
void ReadRowsIn(VectorWidth width, const RowReading& reading);
template <WeightFormat kFormat>
void UpdateRowsIn(VectorWidth width, const RowUpdating& updating);

extern template void ReadRowsIn<WeightFormat::kFp32>(VectorWidth, const RowReading&);
extern template void ReadRowsIn<WeightFormat::kFp16>(VectorWidth, const RowReading&);
extern template void ReadRowsIn<WeightFormat::kBf16>(VectorWidth, const RowReading&);
extern template void UpdateRowsIn<WeightFormat::kFp32>(VectorWidth, const RowUpdating&);
extern template void UpdateRowsIn<WeightFormat::kFp16>(VectorWidth, const RowUpdating&);
extern template void UpdateRowsIn<WeightFormat::kBf16>(VectorWidth, const RowUpdating&);

// ---- Known dims.

// Calls call(constant) with `dim` as a compile-time constant if it is one of kDims, or else with 0.
template <size_t... kDims, typename Call>
void WithDim(std::index_sequence<kDims...>, size_t dim, const Call& call) {
  const bool known =
      ((dim == kDims && (call(std::integral_constant<size_t, kDims>()), true)) || ...);
  if (!known) call(std::integral_constant<size_t, 0>());
}

// The usual dims, for which loops over a row are unrolled. Wide parts have rows of one weight,
// where a loop costs more than its work.
template <WeightFormat kFormat>
using UsualDims = std::conditional_t<kFormat == WeightFormat::kFp32,
                                     std::index_sequence<1, 8, 16, 32, 64, 80, 128>,
                                     std::index_sequence<16, 64, 80>>;
template <WeightFormat kFormat>
using FewDims = std::conditional_t<kFormat == WeightFormat::kFp32, std::index_sequence<1>,
                                   std::index_sequence<>>;

// Returns the dim to specialize for. A machine without wide vectors gets no specialized loops: that
// saves a third of them, and of their compile time.
inline size_t DimFor(VectorWidth width, size_t dim) {
  return width == VectorWidth::kPlain ? 0 : dim;
}
template <size_t kDim, typename Work>
void WithVectorsOf(VectorWidth width, const Work& work) {
  if constexpr (kDim == 0) {
    WithVectors(width, work);
  } else {
    width == VectorWidth::kAvx512 ? WithAvx512(work) : WithAvx2(work);
  }
}

// ---- Weights of one row as floats.

// Copies with stores as wide as the machine has: written lines wait in a short queue that has one
// place for each store.
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

// The place where a row's weights are changed: in the row itself or, for 16-bit weights, in a copy.
// kDim: 0, or the dim if known at compile time.
template <WeightFormat kFormat, size_t kDim>
class WeightsAside {
 public:
  explicit WeightsAside(size_t dim) : heap_(kDim == 0 && dim > kStackFloats ? dim : 0) {}

  HDPS_INLINE float* Load(std::byte* row, size_t dim) {
    LoadWeights<kFormat>(row, dim, wide());
    return wide();
  }
  HDPS_INLINE void Store(size_t dim, const RowPart& part, Key key, int64_t step, std::byte* row) {
    RoundWeights<kFormat>(wide(), dim, RowRoundingSeed(part.rounding_seed, key, step), row);
  }

 private:
  HDPS_INLINE float* wide() {
    if constexpr (kDim > 0) return stack_;
    return heap_.empty() ? stack_ : heap_.data();
  }

  // The longest row widened on the stack; longer ones use the heap.
  static constexpr size_t kStackFloats = kDim > 0 ? kDim : 256;

  alignas(64) float stack_[kStackFloats];  // Aligned, so that no vector crosses a line.
  std::vector<float> heap_;
};

template <size_t kDim>
class WeightsAside<WeightFormat::kFp32, kDim> {
 public:
  explicit WeightsAside(size_t) {}
  HDPS_INLINE float* Load(std::byte* row, size_t) { return reinterpret_cast<float*>(row); }
  HDPS_INLINE void Store(size_t, const RowPart&, Key, int64_t, std::byte*) {}
};

// ---- Reading.

// Calls use(k, rows[k] from byte `offset` on, or null) for all rows of a batch, in order, and
// prefetches `bytes` of them ahead: not of the first ones, for which the look-up has asked. kBytes:
// 0, or how many of `bytes` are known at compile time; behind these only one line is prefetched.
template <size_t kBytes, typename Byte, typename Use>
HDPS_INLINE void ForEachPart(Byte* const* rows, size_t count, size_t offset, size_t bytes,
                             const Use& use) {
  const size_t rows_ahead = RowStore::RowsAhead(bytes);
  const bool has_more = kBytes > 0 && bytes > kBytes;
  for (size_t k = 0; k < count; ++k) {
    if (k + rows_ahead < count && rows[k + rows_ahead] != nullptr) {
      const std::byte* const ahead = rows[k + rows_ahead] + offset;
      RowStore::Prefetch<kBytes>(ahead, bytes);
      if (has_more) __builtin_prefetch(ahead + bytes - sizeof(float));
    }
    use(k, rows[k] != nullptr ? rows[k] + offset : nullptr);
  }
}

template <VectorWidth kWidth, WeightFormat kFormat, size_t kDim>
HDPS_INLINE void ReadAll(const RowReading& r) {
  const size_t dim = kDim > 0 ? kDim : r.part.dim;
  float* const out = r.out;
  MissingRows missing(r.part.initial, 0);
  ForEachPart<WeightBytes(kFormat, kDim)>(
      r.rows, r.keys.size(), r.part.offset,
      r.reach, [&](size_t k, const std::byte* row) __attribute__((always_inline)) {
        if (row == nullptr) [[unlikely]] {
          missing.Add(r.keys[k], out + k * dim);
        } else if constexpr (kFormat == WeightFormat::kFp32) {
          CopyFloats<kWidth>(reinterpret_cast<const float*>(row), dim, out + k * dim);
        } else {
          LoadWeights<kFormat>(row, dim, out + k * dim);
        }
      });
}

template <WeightFormat kFormat>
void ReadRowsIn(VectorWidth width, const RowReading& r) {
  WithDim(UsualDims<kFormat>(), DimFor(width, r.part.dim), [&](auto dim) {
    constexpr size_t kDim = decltype(dim)::value;
    WithVectorsOf<kDim>(
        width, [&](auto copy)
                   __attribute__((always_inline)) { ReadAll<copy.width, kFormat, kDim>(r); });
  });
}

// ---- Updating.

template <typename Rule, WeightFormat kFormat, size_t kDim>
HDPS_INLINE void UpdateAll(const RowUpdating& u) {
  constexpr size_t kOwnBytes =
      kDim > 0 ? WeightBytes(kFormat, kDim) + StateFloatsOf<Rule>(kDim) * sizeof(float) : 0;
  const OptimizerSettings settings = u.spec;
  const GradientScale scale = u.scale;
  const size_t dim = kDim > 0 ? kDim : u.part.dim;
  const size_t rest_at = u.part.rest - u.part.offset;
  const float* const values = u.values;
  RowFactors<Rule> factors(settings, u.step);
  WeightsAside<kFormat, kDim> aside(dim);
  ForEachPart<kOwnBytes>(
      u.rows, u.keys.size(), u.part.offset,
      u.part.end() - u.part.offset, [&](size_t k, std::byte * row) __attribute__((always_inline)) {
        UpdateOneRow<Rule>(settings, factors, dim, values + k * dim, scale, aside.Load(row, dim),
                           reinterpret_cast<float*>(row + rest_at));
        aside.Store(dim, u.part, u.keys[k], u.step, row);
      });
}

// Updates rows by one optimizer.
template <typename Rule, WeightFormat kFormat>
void UpdateRowsBy(VectorWidth width, const RowUpdating& u) {
  using Dims = std::conditional_t<Rule::kLoopsKnowDims, UsualDims<kFormat>, FewDims<kFormat>>;
  WithDim(Dims(), DimFor(width, u.part.dim), [&](auto dim) {
    constexpr size_t kDim = decltype(dim)::value;
    WithVectorsOf<kDim>(
        width, [&]() __attribute__((always_inline)) { UpdateAll<Rule, kFormat, kDim>(u); });
  });
}

template <WeightFormat kFormat>
void UpdateRowsIn(VectorWidth width, const RowUpdating& u) {
  WithRowOptimizer(u.spec.record->kind,
                   [&](auto rule) { UpdateRowsBy<decltype(rule), kFormat>(width, u); });
}

}  // namespace hdps
