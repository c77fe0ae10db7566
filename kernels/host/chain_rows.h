// The tasks of element chains row by row in the vectors of the host: the same bits as element by
// element.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/tasks/column_norm.h"
#include "kernels/tasks/element_chain.h"
#include "kernels/vector_width.h"

namespace hdps {

// Columns that go through all stages before the next ones: they stay in the first-level cache.
inline constexpr size_t kChainColumns = 128;
struct ChainStrip {
  alignas(64) float h[kChainColumns];
  alignas(64) uint64_t draws[kChainColumns / DropoutMask::kColumnsADraw];
};

HDPS_INLINE void InnerOf(const ElementChain& chain, const float* __restrict z, size_t first,
                         size_t cols, float* __restrict h) {
  if (chain.mean == nullptr) {
    for (size_t j = 0; j < cols; ++j) h[j] = z[j];
    return;
  }
  const float* __restrict mean = chain.mean + first;
  const float* __restrict factor = chain.factor + first;
  const float* __restrict bias = chain.bias + first;
  for (size_t j = 0; j < cols; ++j) h[j] = (z[j] - mean[j]) * factor[j] + bias[j];
}

// values *= the mask's factors in columns [first, first + cols); `first` begins a strip.
HDPS_INLINE void MaskStrip(const DropoutMask& mask, uint64_t of_row, size_t first, size_t cols,
                           ChainStrip& strip, float* __restrict values) {
  if (mask.threshold == 0) return;
  constexpr size_t kDraw = DropoutMask::kColumnsADraw;
  for (size_t g = 0; g < (cols + kDraw - 1) / kDraw; ++g) {
    strip.draws[g] = DropoutMask::DrawOf(of_row, first / kDraw + g);
  }
  typedef uint16_t Bits __attribute__((may_alias));
  const Bits* __restrict bits = reinterpret_cast<const Bits*>(strip.draws);
  const auto threshold = static_cast<int32_t>(mask.threshold);
  const float scale = mask.scale;
  for (size_t j = 0; j < cols; ++j) {
    values[j] *= static_cast<int32_t>(bits[j]) >= threshold ? scale : 0.0f;
  }
}

HDPS_INLINE void ActivateStrip(Activation kind, size_t cols, float* __restrict h) {
  if (kind == Activation::kNone) return;
  if (kind == Activation::kRelu) {
    for (size_t j = 0; j < cols; ++j) h[j] = h[j] > 0.0f ? h[j] : 0.0f;
    return;
  }
  for (size_t j = 0; j < cols; ++j) h[j] = ActivationOf(kind, h[j]);
}

// gradient *= slope at h.
HDPS_INLINE void SlopeStrip(Activation kind, const float* __restrict h, size_t cols,
                            float* __restrict gradient) {
  if (kind == Activation::kNone) return;
  if (kind == Activation::kRelu) {
    for (size_t j = 0; j < cols; ++j) gradient[j] = h[j] > 0.0f ? gradient[j] : 0.0f;
    return;
  }
  for (size_t j = 0; j < cols; ++j) gradient[j] *= ActivationSlope(kind, h[j]);
}

HDPS_INLINE void HostRow(const RunChain& task, size_t row) {
  ChainStrip strip;
  const DropoutMask& mask = task.chain.mask;
  const uint64_t of_row = mask.threshold == 0 ? 0 : mask.OfRow(row);
  for (size_t first = 0; first < task.y.cols; first += kChainColumns) {
    const size_t cols = std::min(kChainColumns, task.y.cols - first);
    InnerOf(task.chain, task.z.Row(row) + first, first, cols, strip.h);
    ActivateStrip(task.chain.activation, cols, strip.h);
    MaskStrip(mask, of_row, first, cols, strip, strip.h);
    std::memcpy(task.y.Row(row) + first, strip.h, cols * sizeof(float));
  }
}

// The gradient of h from that of y, for one strip of one row: `gradient` has dy and gets dh.
HDPS_INLINE void InnerGradientOf(const ElementChain& chain, const float* z, uint64_t of_row,
                                 size_t first, size_t cols, ChainStrip& strip, float* gradient) {
  MaskStrip(chain.mask, of_row, first, cols, strip, gradient);
  if (chain.activation == Activation::kNone) return;
  InnerOf(chain, z, first, cols, strip.h);
  SlopeStrip(chain.activation, strip.h, cols, gradient);
}

HDPS_INLINE void HostRow(const RunChainBackward& task, size_t row) {
  ChainStrip strip;
  alignas(64) float gradient[kChainColumns];
  const uint64_t of_row = task.chain.mask.threshold == 0 ? 0 : task.chain.mask.OfRow(row);
  for (size_t first = 0; first < task.dz.cols; first += kChainColumns) {
    const size_t cols = std::min(kChainColumns, task.dz.cols - first);
    std::memcpy(gradient, task.dy.Row(row) + first, cols * sizeof(float));
    InnerGradientOf(task.chain, task.z.Row(row) + first, of_row, first, cols, strip, gradient);
    float* to = task.dz.Row(row) + first;
    for (size_t j = 0; j < cols; ++j) WriteTo(to[j], task.write, gradient[j]);
  }
}

HDPS_INLINE void HostRow(const SumColumns& task, size_t block) {
  const size_t begin = block * kSumRows, rows = task.sums.RowsOf(block);
  const auto n = static_cast<float>(rows);
  for (size_t first = 0; first < task.sums.cols; first += kChainColumns) {
    const size_t cols = std::min(kChainColumns, task.sums.cols - first);
    alignas(64) float sum[kChainColumns] = {}, squares[kChainColumns] = {}, mean[kChainColumns];
    for (size_t r = begin; r < begin + rows; ++r) {
      const float* __restrict z = task.z.Row(r) + first;
      for (size_t j = 0; j < cols; ++j) sum[j] += z[j];
    }
    for (size_t j = 0; j < cols; ++j) mean[j] = sum[j] / n;
    for (size_t r = begin; r < begin + rows; ++r) {
      const float* __restrict z = task.z.Row(r) + first;
      for (size_t j = 0; j < cols; ++j) {
        const float apart = z[j] - mean[j];
        squares[j] += apart * apart;
      }
    }
    std::memcpy(task.sums.First(block) + first, sum, cols * sizeof(float));
    std::memcpy(task.sums.Second(block) + first, squares, cols * sizeof(float));
  }
}

HDPS_INLINE void HostRow(const SumChainBackward& task, size_t block) {
  ChainStrip strip;
  const size_t begin = block * kSumRows, rows = task.sums.RowsOf(block);
  const DropoutMask& mask = task.chain.mask;
  uint64_t of_row[kSumRows] = {};
  for (size_t r = 0; r < rows && mask.threshold > 0; ++r) of_row[r] = mask.OfRow(begin + r);
  for (size_t first = 0; first < task.sums.cols; first += kChainColumns) {
    const size_t cols = std::min(kChainColumns, task.sums.cols - first);
    alignas(64) float sum[kChainColumns] = {}, along[kChainColumns] = {};
    const float* __restrict mean = task.chain.mean + first;
    for (size_t r = 0; r < rows; ++r) {
      const float* __restrict z = task.z.Row(begin + r) + first;
      float* __restrict gradient = task.dy.Row(begin + r) + first;
      InnerGradientOf(task.chain, z, of_row[r], first, cols, strip, gradient);
      for (size_t j = 0; j < cols; ++j) {
        sum[j] += gradient[j];
        along[j] += gradient[j] * (z[j] - mean[j]);
      }
    }
    std::memcpy(task.sums.First(block) + first, sum, cols * sizeof(float));
    std::memcpy(task.sums.Second(block) + first, along, cols * sizeof(float));
  }
}

HDPS_INLINE void HostRow(const NormalizeColumnsBackward& task, size_t row) {
  const size_t cols = task.dz.cols;
  const float* const z = task.z.Row(row);
  const float* const dh = task.dh.Row(row);
  float* const dz = task.dz.Row(row);
  const float* __restrict mean = task.mean;
  const float* __restrict factor = task.factor;
  const float* __restrict shift = task.shift;
  const float* __restrict along = task.along;
  const bool add = task.write == Write::kAdd;
  // Neighbours do not depend on each other, also where dz is dh.
#pragma GCC ivdep
  for (size_t j = 0; j < cols; ++j) {
    const float gradient = factor[j] * (dh[j] - shift[j] - (z[j] - mean[j]) * along[j]);
    dz[j] = add ? dz[j] + gradient : gradient;
  }
}

}  // namespace hdps
