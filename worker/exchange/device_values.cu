// One thread a value; sums are never fused or reordered, so the bits are those of the CPU.
#include <cuda_runtime.h>

#include "worker/exchange/device_values.h"

namespace hdps {
namespace {

constexpr uint32_t kThreads = 256;

struct SumFloats {
  __device__ float operator()(float a, float b) const { return __fadd_rn(a, b); }
};
struct Sum {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Or {
  __device__ uint64_t operator()(uint64_t a, uint64_t b) const { return a | b; }
};

template <typename T, typename Op>
__global__ void Combine(const std::byte* parts, size_t stride, uint32_t ranks, size_t count,
                        T* result, Op op) {
  const size_t i = size_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) return;
  T value = reinterpret_cast<const T*>(parts)[i];
  for (uint32_t r = 1; r < ranks; ++r) {
    value = op(value, reinterpret_cast<const T*>(parts + stride * r)[i]);
  }
  result[i] = value;
}

template <typename T, typename Op>
int Launch(const std::byte* parts, size_t stride, uint32_t ranks, size_t count, std::byte* result,
           Op op, void* stream) {
  const auto blocks = static_cast<uint32_t>((count + kThreads - 1) / kThreads);
  Combine<T><<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      parts, stride, ranks, count, reinterpret_cast<T*>(result), op);
  return cudaGetLastError();
}

}  // namespace

int LaunchCombine(Reduction reduction, const std::byte* parts, size_t stride, uint32_t ranks,
                  size_t count, std::byte* result, void* stream) {
  if (count == 0) return cudaSuccess;
  switch (reduction) {
    case Reduction::kSumFloat:
      return Launch<float>(parts, stride, ranks, count, result, SumFloats(), stream);
    case Reduction::kSumUint32:
      return Launch<uint32_t>(parts, stride, ranks, count, result, Sum(), stream);
    case Reduction::kSumUint64:
      return Launch<uint64_t>(parts, stride, ranks, count, result, Sum(), stream);
    case Reduction::kOrUint64:
      return Launch<uint64_t>(parts, stride, ranks, count, result, Or(), stream);
  }
  return cudaErrorInvalidValue;
}

int CopyToOrFromDevice(void* to, const void* from, size_t size) {
  return cudaMemcpy(to, from, size, cudaMemcpyDefault);
}

const char* DeviceErrorText(int error) {
  return cudaGetErrorString(static_cast<cudaError_t>(error));
}

}  // namespace hdps
