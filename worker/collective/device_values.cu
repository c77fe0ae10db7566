// Combines values on the GPU, one thread a value. Sums are never fused or reordered, so the bits
// are those of the CPU.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "common/base/dtype.h"
#include "kernels/cuda/cuda_check.cuh"
#include "worker/collective/device_values.h"

namespace hdps {
namespace {

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
  const size_t i = size_t{blockIdx.x} * kThreadsABlock + threadIdx.x;
  if (i >= count) return;
  T value = reinterpret_cast<const T*>(parts)[i];
  for (uint32_t r = 1; r < ranks; ++r) {
    value = op(value, reinterpret_cast<const T*>(parts + stride * r)[i]);
  }
  result[i] = value;
}

template <typename T, typename Op>
void Launch(const std::byte* parts, size_t stride, uint32_t ranks, size_t count, std::byte* result,
            Op op, void* stream) {
  StartKernel(Combine<T, Op>, BlocksFor(count), kThreadsABlock, static_cast<cudaStream_t>(stream),
              parts, stride, ranks, count, reinterpret_cast<T*>(result), op);
}

// Converts halves as kernels/host/half_floats.h does, including rounding and overflow.
template <DType kFormat>
__device__ float Widen(uint16_t half) {
  if (kFormat == DType::kFp16) return __half2float(__ushort_as_half(half));
  return __uint_as_float(static_cast<uint32_t>(half) << 16);
}
template <DType kFormat>
__device__ uint16_t Narrow(float value) {
  const uint32_t bits = __float_as_uint(value), magnitude = bits & 0x7fffffffu;
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  constexpr bool kFp = kFormat == DType::kFp16;
  if (magnitude >= 0x7f800000u) {
    const bool none = magnitude > 0x7f800000u;
    return sign | (kFp ? (none ? 0x7e00 : 0x7c00) : (none ? 0x7fc0 : 0x7f80));
  }
  if (kFp) {
    const float most = fminf(__uint_as_float(magnitude), 65504.0f);
    return sign | __half_as_ushort(__float2half_rn(most));
  }
  const uint32_t rounded = (magnitude + 0x7fffu + (magnitude >> 16 & 1u)) >> 16;
  return sign | static_cast<uint16_t>(rounded < 0x7f7fu ? rounded : 0x7f7fu);
}

template <DType kFormat>
__global__ void CombineHalves(const std::byte* parts, size_t stride, uint32_t ranks, size_t count,
                              uint16_t* result) {
  const size_t i = size_t{blockIdx.x} * kThreadsABlock + threadIdx.x;
  if (i >= count) return;
  float sum = Widen<kFormat>(reinterpret_cast<const uint16_t*>(parts)[i]);
  for (uint32_t r = 1; r < ranks; ++r) {
    sum = __fadd_rn(sum, Widen<kFormat>(reinterpret_cast<const uint16_t*>(parts + stride * r)[i]));
  }
  result[i] = Narrow<kFormat>(sum);
}

template <DType kFormat>
void LaunchHalves(const std::byte* parts, size_t stride, uint32_t ranks, size_t count,
                  std::byte* result, void* stream) {
  StartKernel(CombineHalves<kFormat>, BlocksFor(count), kThreadsABlock,
              static_cast<cudaStream_t>(stream), parts, stride, ranks, count,
              reinterpret_cast<uint16_t*>(result));
}

}  // namespace

int LaunchCombine(Reduction reduction, const std::byte* parts, size_t stride, uint32_t ranks,
                  size_t count, std::byte* result, void* stream) {
  if (count == 0) return cudaSuccess;
  switch (reduction) {
    case Reduction::kSumFloat:
      Launch<float>(parts, stride, ranks, count, result, SumFloats(), stream);
      break;
    case Reduction::kSumUint32:
      Launch<uint32_t>(parts, stride, ranks, count, result, Sum(), stream);
      break;
    case Reduction::kSumUint64:
      Launch<uint64_t>(parts, stride, ranks, count, result, Sum(), stream);
      break;
    case Reduction::kOrUint64:
      Launch<uint64_t>(parts, stride, ranks, count, result, Or(), stream);
      break;
    case Reduction::kSumFp16:
      LaunchHalves<DType::kFp16>(parts, stride, ranks, count, result, stream);
      break;
    case Reduction::kSumBf16:
      LaunchHalves<DType::kBf16>(parts, stride, ranks, count, result, stream);
      break;
  }
  return cudaSuccess;
}

int CopyToOrFromDevice(void* to, const void* from, size_t size) {
  return cudaMemcpy(to, from, size, cudaMemcpyDefault);
}

const char* DeviceErrorText(int error) {
  return cudaGetErrorString(static_cast<cudaError_t>(error));
}

}  // namespace hdps
