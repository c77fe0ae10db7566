// Neighbours in a row of floats that one thread reads, computes and writes at once.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace hdps {

template <size_t kWidth>
struct alignas(kWidth * sizeof(float)) Neighbours {
  float at[kWidth];

  __device__ static Neighbours From(const float* data) {
    return *reinterpret_cast<const Neighbours*>(data);
  }
  __device__ void To(float* data) const { *reinterpret_cast<Neighbours*>(data) = *this; }
  __device__ void Add(const Neighbours& other, float factor) {
    for (size_t w = 0; w < kWidth; ++w) at[w] += factor * other.at[w];
  }
};
inline constexpr size_t kWide = 4;  // 16 bytes.

// Rows, so many floats apart, that can be read so.
inline bool IsWide(const float* data, size_t stride) {
  return reinterpret_cast<uintptr_t>(data) % sizeof(Neighbours<kWide>) == 0 && stride % kWide == 0;
}

}  // namespace hdps
