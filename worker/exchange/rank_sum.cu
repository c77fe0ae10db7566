// One thread a value; additions are never fused or reordered, so the bits are those of the CPU.
#include <cuda_runtime.h>

#include "worker/exchange/rank_sum.h"

namespace hdps {
namespace {

constexpr uint32_t kThreads = 256;

__global__ void RankSum(const float* parts, uint32_t ranks, size_t count, float* sum) {
  const size_t i = size_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) return;
  float total = parts[i];
  for (uint32_t r = 1; r < ranks; ++r) total = __fadd_rn(total, parts[r * count + i]);
  sum[i] = total;
}

}  // namespace

int LaunchRankSum(const float* parts, uint32_t ranks, size_t count, float* sum, void* stream) {
  if (count == 0) return cudaSuccess;
  const auto blocks = static_cast<uint32_t>((count + kThreads - 1) / kThreads);
  RankSum<<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(parts, ranks, count, sum);
  return cudaGetLastError();
}

}  // namespace hdps
