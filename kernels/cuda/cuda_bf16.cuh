// Numbers in bf16 on the device: matrices, and what is done with them beside products.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/cuda_neighbours.cuh"
#include "kernels/matrix.h"

namespace hdps {

// To the nearest, of two as near to the even one; what is no number stays none.
__device__ inline uint16_t ToBf16(float value) {
  const uint32_t bits = __float_as_uint(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
__device__ inline float FromBf16OnDevice(uint16_t value) {
  return __uint_as_float(uint32_t{value} << 16);
}

template <size_t kWidth>
struct alignas(kWidth * sizeof(uint16_t)) HalfNeighbours {
  uint16_t at[kWidth];
};

// Neighbours of a matrix in either format.
template <size_t kWidth>
__device__ Neighbours<kWidth> Load(const ConstMatrix& m, size_t row, size_t col) {
  return Neighbours<kWidth>::From(m.data + row * m.stride + col);
}
template <size_t kWidth>
__device__ Neighbours<kWidth> Load(const Bf16Matrix& m, size_t row, size_t col) {
  const auto half = *reinterpret_cast<const HalfNeighbours<kWidth>*>(m.data + row * m.stride + col);
  Neighbours<kWidth> found;
  for (size_t w = 0; w < kWidth; ++w) found.at[w] = FromBf16OnDevice(half.at[w]);
  return found;
}
template <size_t kWidth>
__device__ void Store(const Neighbours<kWidth>& values, const Matrix& m, size_t row, size_t col) {
  values.To(m.data + row * m.stride + col);
}
template <size_t kWidth>
__device__ void Store(const Neighbours<kWidth>& values, const Bf16Matrix& m, size_t row,
                      size_t col) {
  HalfNeighbours<kWidth> half;
  for (size_t w = 0; w < kWidth; ++w) half.at[w] = ToBf16(values.at[w]);
  *reinterpret_cast<HalfNeighbours<kWidth>*>(m.data + row * m.stride + col) = half;
}

// Whether kWide neighbours can be read or written at once.
inline bool IsWide(const ConstMatrix& m) { return IsWide(m.data, m.stride); }
inline bool IsWide(const Bf16Matrix& m) {
  return reinterpret_cast<uintptr_t>(m.data) % sizeof(HalfNeighbours<kWide>) == 0 &&
         m.stride % kWide == 0;
}

}  // namespace hdps
