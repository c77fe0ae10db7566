// Has one loop for each kind of chain: with or without normalization and dropout; linear, ReLU or
// another activation. A tanh alone has no branches, since a library's takes as long as the products
// around it.
#include "kernels/host/chain_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "common/job/activation.h"
#include "kernels/host/exponential.h"
#include "kernels/tasks/task_bodies.h"

namespace hdps {
namespace {

// Columns handled at a time: their data stays in the first-level cache.
constexpr size_t kStrip = 128;

// A chain whose kind is known at compile time. kBend: neither linear nor a ReLU.
template <bool kNorm, Activation kKind, bool kDrops>
struct KindOfChain {
  static constexpr bool normalizes = kNorm, drops = kDrops;
  static constexpr Activation kind = kKind;
};
constexpr Activation kBend = Activation::kGelu;

template <bool kNorm, typename Call>
HDPS_INLINE void WithKind(const ElementChain& chain, const Call& call) {
  const auto with_mask = [&](auto kind) __attribute__((always_inline)) {
    constexpr Activation kKind = decltype(kind)::value;
    if (chain.mask.threshold > 0) {
      call(KindOfChain<kNorm, kKind, true>());
    } else {
      call(KindOfChain<kNorm, kKind, false>());
    }
  };
  switch (chain.activation) {
    case Activation::kNone:
      return with_mask(std::integral_constant<Activation, Activation::kNone>());
    case Activation::kRelu:
      return with_mask(std::integral_constant<Activation, Activation::kRelu>());
    default:
      return with_mask(std::integral_constant<Activation, kBend>());
  }
}

// Random bits of the mask for one row in one strip, 16 a column.
typedef uint16_t Bits __attribute__((may_alias));
struct Draws {
  alignas(64) uint64_t bits[kStrip / DropoutMask::kColumnsADraw];
  HDPS_INLINE const Bits* Make(const DropoutMask& mask, size_t row, size_t first, size_t cols) {
    constexpr size_t kColumns = DropoutMask::kColumnsADraw;
    const uint64_t of_row = mask.OfRow(row);
    for (size_t g = 0; g < (cols + kColumns - 1) / kColumns; ++g) {
      bits[g] = DropoutMask::DrawOf(of_row, first / kColumns + g);
    }
    return reinterpret_cast<const Bits*>(bits);
  }
};

// Values shared by all rows of a strip.
struct StripColumns {
  const float* mean;
  const float* factor;
  const float* bias;
  Activation activation;
  int32_t threshold;
  float scale;
  StripColumns(const ElementChain& chain, size_t first)
      : mean(chain.mean + first),
        factor(chain.factor + first),
        bias(chain.bias + first),
        activation(chain.activation),
        threshold(static_cast<int32_t>(chain.mask.threshold)),
        scale(chain.mask.scale) {}
};

// Returns `value` or zero, without a branch that would prevent vectorization.
HDPS_INLINE float KeepIf(bool keep, float value) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) & -static_cast<uint32_t>(keep));
}
HDPS_INLINE float MaskFactor(const StripColumns& c, const Bits* bits, size_t j) {
  return KeepIf(static_cast<int32_t>(bits[j]) >= c.threshold, c.scale);
}

template <typename Kind>
HDPS_INLINE float Inner(const StripColumns& c, float z, size_t j) {
  if constexpr (Kind::normalizes) return (z - c.mean[j]) * c.factor[j] + c.bias[j];
  return z;
}

template <typename Kind>
HDPS_INLINE float Forward(const StripColumns& c, const Bits* bits, float z, size_t j) {
  float h = Inner<Kind>(c, z, j);
  if constexpr (Kind::kind == Activation::kRelu) h = KeepIf(h > 0.0f, h);
  if constexpr (Kind::kind == kBend) h = ActivationOf(c.activation, h);
  if constexpr (Kind::drops) h *= MaskFactor(c, bits, j);
  return h;
}

template <typename Kind>
HDPS_INLINE float Backward(const StripColumns& c, const Bits* bits, float dy, float z, size_t j) {
  if constexpr (Kind::drops) dy *= MaskFactor(c, bits, j);
  if constexpr (Kind::kind == Activation::kNone) return dy;
  const float h = Inner<Kind>(c, z, j);
  if constexpr (Kind::kind == Activation::kRelu) return KeepIf(h > 0.0f, dy);
  return dy * ActivationSlope(c.activation, h);
}

template <typename Kind>
HDPS_INLINE void ForwardRow(const RunChain& task, size_t row) {
  Draws draws;
  for (size_t first = 0; first < task.y.cols; first += kStrip) {
    const size_t cols = std::min(kStrip, task.y.cols - first);
    const StripColumns c(task.chain, first);
    const Bits* bits = nullptr;
    if constexpr (Kind::drops) bits = draws.Make(task.chain.mask, row, first, cols);
    const float* const z = task.z.Row(row) + first;
    float* const y = task.y.Row(row) + first;
#pragma GCC ivdep  // y is z or apart from it.
    for (size_t j = 0; j < cols; ++j) y[j] = Forward<Kind>(c, bits, z[j], j);
  }
}

template <typename Kind>
HDPS_INLINE void BackwardRow(const RunChainBackward& task, size_t row) {
  Draws draws;
  for (size_t first = 0; first < task.dz.cols; first += kStrip) {
    const size_t cols = std::min(kStrip, task.dz.cols - first);
    const StripColumns c(task.chain, first);
    const Bits* bits = nullptr;
    if constexpr (Kind::drops) bits = draws.Make(task.chain.mask, row, first, cols);
    const float* const z = task.z.Row(row) + first;
    const float* const dy = task.dy.Row(row) + first;
    float* const dz = task.dz.Row(row) + first;
    if (task.write == Write::kAdd) {
#pragma GCC ivdep  // dz is dy or apart from it.
      for (size_t j = 0; j < cols; ++j) dz[j] += Backward<Kind>(c, bits, dy[j], z[j], j);
    } else {
#pragma GCC ivdep
      for (size_t j = 0; j < cols; ++j) dz[j] = Backward<Kind>(c, bits, dy[j], z[j], j);
    }
  }
}

template <typename Kind>
HDPS_INLINE void BackwardBlock(const SumChainBackward& task, size_t block) {
  Draws draws;
  const size_t begin = block * kSumRows, rows = task.sums.RowsOf(block);
  for (size_t first = 0; first < task.sums.cols; first += kStrip) {
    const size_t cols = std::min(kStrip, task.sums.cols - first);
    const StripColumns c(task.chain, first);
    alignas(64) float sum[kStrip] = {}, along[kStrip] = {};
    for (size_t r = begin; r < begin + rows; ++r) {
      const Bits* bits = nullptr;
      if constexpr (Kind::drops) bits = draws.Make(task.chain.mask, r, first, cols);
      const float* const z = task.z.Row(r) + first;
      float* const dy = task.dy.Row(r) + first;
#pragma GCC ivdep
      for (size_t j = 0; j < cols; ++j) dy[j] = Backward<Kind>(c, bits, dy[j], z[j], j);
      // A loop of its own, so that compilers vectorize both without branches.
      for (size_t j = 0; j < cols; ++j) {
        sum[j] += dy[j];
        along[j] += dy[j] * (z[j] - c.mean[j]);
      }
    }
    std::memcpy(task.sums.First(block) + first, sum, cols * sizeof(float));
    std::memcpy(task.sums.Second(block) + first, along, cols * sizeof(float));
  }
}

HDPS_INLINE void SumBlock(const SumColumns& task, size_t block) {
  const size_t begin = block * kSumRows, rows = task.sums.RowsOf(block);
  const auto n = static_cast<float>(rows);
  for (size_t first = 0; first < task.sums.cols; first += kStrip) {
    const size_t cols = std::min(kStrip, task.sums.cols - first);
    alignas(64) float sum[kStrip] = {}, squares[kStrip] = {}, mean[kStrip];
    for (size_t r = begin; r < begin + rows; ++r) {
      const float* const z = task.z.Row(r) + first;
      for (size_t j = 0; j < cols; ++j) sum[j] += z[j];
    }
    for (size_t j = 0; j < cols; ++j) mean[j] = sum[j] / n;
    for (size_t r = begin; r < begin + rows; ++r) {
      const float* const z = task.z.Row(r) + first;
      for (size_t j = 0; j < cols; ++j) {
        const float apart = z[j] - mean[j];
        squares[j] += apart * apart;
      }
    }
    std::memcpy(task.sums.First(block) + first, sum, cols * sizeof(float));
    std::memcpy(task.sums.Second(block) + first, squares, cols * sizeof(float));
  }
}

HDPS_INLINE void NormalizeRow(const NormalizeColumnsBackward& task, size_t row) {
  const size_t cols = task.dz.cols;
  const float* const z = task.z.Row(row);
  const float* const dh = task.dh.Row(row);
  float* const dz = task.dz.Row(row);
  const auto gradient = [&](size_t j) __attribute__((always_inline)) {
    return task.factor[j] * (dh[j] - task.shift[j] - (z[j] - task.mean[j]) * task.along[j]);
  };
  if (task.write == Write::kAdd) {
#pragma GCC ivdep  // dz is dh or apart from it.
    for (size_t j = 0; j < cols; ++j) dz[j] += gradient(j);
  } else {
#pragma GCC ivdep
    for (size_t j = 0; j < cols; ++j) dz[j] = gradient(j);
  }
}

// Returns tanh x: near zero by a minimax polynomial in x^2 (Cephes, tanhf), else by e^2x. From 9.1
// on it is 1 in a float.
HDPS_INLINE float TanhOf(float x) {
  constexpr float kNear = 0.625f, kOne = 9.1f;
  const float size = std::fabs(x), bounded = size > kOne ? kOne : size;
  const float far = 1.0f - 2.0f / (ExpOf(2.0f * bounded) + 1.0f);
  const float z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  const float near = p * z * x + x;
  return size < kNear ? near : std::copysign(far, x);
}

HDPS_INLINE void TanhOfRow(const float* z, float* y, size_t cols) {
#pragma GCC ivdep  // y is z or apart from it.
  for (size_t j = 0; j < cols; ++j) y[j] = TanhOf(z[j]);
}

}  // namespace

void HostRows(VectorWidth width, const RunChain& task, size_t first, size_t count) {
  const auto run = [&](auto kind) __attribute__((always_inline)) {
    using Kind = decltype(kind);
    WithVectors(
        width, [&]() __attribute__((always_inline)) {
          for (size_t r = first; r < first + count; ++r) ForwardRow<Kind>(task, r);
        });
  };
  task.chain.mean == nullptr ? WithKind<false>(task.chain, run) : WithKind<true>(task.chain, run);
}

void HostRows(VectorWidth width, const RunChainBackward& task, size_t first, size_t count) {
  WithKind<false>(task.chain, [&](auto kind) {
    using Kind = decltype(kind);
    WithVectors(
        width, [&]() __attribute__((always_inline)) {
          for (size_t r = first; r < first + count; ++r) BackwardRow<Kind>(task, r);
        });
  });
}

void HostRows(VectorWidth width, const SumChainBackward& task, size_t first, size_t count) {
  WithKind<true>(task.chain, [&](auto kind) {
    using Kind = decltype(kind);
    WithVectors(
        width, [&]() __attribute__((always_inline)) {
          for (size_t b = first; b < first + count; ++b) BackwardBlock<Kind>(task, b);
        });
  });
}

void HostRows(VectorWidth width, const SumColumns& task, size_t first, size_t count) {
  WithVectors(
      width, [&]() __attribute__((always_inline)) {
        for (size_t b = first; b < first + count; ++b) SumBlock(task, b);
      });
}

void HostRows(VectorWidth width, const NormalizeColumnsBackward& task, size_t first, size_t count) {
  WithVectors(
      width, [&]() __attribute__((always_inline)) {
        for (size_t r = first; r < first + count; ++r) NormalizeRow(task, r);
      });
}

void HostRows(VectorWidth width, const Activate& task, size_t first, size_t count) {
  if (task.kind == Activation::kTanh) {
    return WithVectors(
        width, [&]() __attribute__((always_inline)) {
          for (size_t r = first; r < first + count; ++r) {
            TanhOfRow(task.z.Row(r), task.y.Row(r), task.y.cols);
          }
        });
  }
  for (size_t r = first; r < first + count; ++r) {
    for (size_t j = 0; j < task.y.cols; ++j) task(r, j);
  }
}

}  // namespace hdps
