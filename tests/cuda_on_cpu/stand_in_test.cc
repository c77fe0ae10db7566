// Tests the mistakes that the emulation detects; a GPU would sometimes answer them with wrong
// numbers.
#include "tests/cuda_on_cpu/stand_in.h"

#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

#include "kernels/cuda/cuda_check.cuh"
#include "kernels/cuda/cuda_memory.cuh"

namespace hdps {
namespace {

constexpr size_t kCount = 1000;

__global__ void Fill(float* data, size_t count, float value) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) data[i] = value;
}

__global__ void CopyFloats(const float* from, float* to, size_t count) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) to[i] = from[i];
}

// Sums one block's values, with or without waiting for the other threads.
template <bool kWait>
__global__ void SumBlock(const float* data, float* sum) {
  __shared__ float values[kThreadsABlock];
  values[threadIdx.x] = data[threadIdx.x];
  if (kWait) __syncthreads();
  for (unsigned half = kThreadsABlock / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) values[threadIdx.x] += values[threadIdx.x + half];
    if (kWait) __syncthreads();
  }
  if (threadIdx.x == 0) *sum = values[0];
}

std::vector<float> Down(const CudaArray<float>& from, size_t count) {
  std::vector<float> values(count);
  HDPS_CUDA_CHECK(
      cudaMemcpy(values.data(), from.data(), count * sizeof(float), cudaMemcpyDeviceToHost));
  return values;
}

template <bool kWait>
float SumOfBlock() {
  CudaArray<float> data, sum;
  data.Reserve(kThreadsABlock);
  sum.Reserve(1);
  const CudaStream stream;
  StartKernel(Fill, 1, kThreadsABlock, stream, data.data(), kThreadsABlock, 1.0f);
  StartKernel(SumBlock<kWait>, 1, kThreadsABlock, stream, data.data(), sum.data());
  HDPS_CUDA_CHECK(cudaStreamSynchronize(stream));
  return Down(sum, 1)[0];
}

TEST(CudaOnCpu, ThreadsWaitForEachOther) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    cuda_on_cpu::SetSeed(seed);
    EXPECT_EQ(SumOfBlock<true>(), kThreadsABlock);
  }
}

TEST(CudaOnCpu, AMissingSyncthreadsGivesAnotherSum) {
  int wrong = 0;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    cuda_on_cpu::SetSeed(seed);
    if (SumOfBlock<false>() != kThreadsABlock) ++wrong;
  }
  EXPECT_EQ(wrong, 5);
}

// Uses two streams, of which the second reads what the first writes.
float ReadAcrossStreams(bool with_event) {
  const CudaStream writer, reader;
  const CudaEvent written;
  CudaArray<float> data, copy;
  data.Reserve(kCount);
  copy.Reserve(kCount);
  StartKernel(Fill, BlocksFor(kCount), kThreadsABlock, writer, data.data(), kCount, 1.0f);
  HDPS_CUDA_CHECK(cudaStreamSynchronize(writer));
  StartKernel(Fill, BlocksFor(kCount), kThreadsABlock, writer, data.data(), kCount, 2.0f);
  HDPS_CUDA_CHECK(cudaEventRecord(written, writer));
  if (with_event) HDPS_CUDA_CHECK(cudaStreamWaitEvent(reader, written, 0));
  StartKernel(CopyFloats, BlocksFor(kCount), kThreadsABlock, reader, data.data(), copy.data(),
              kCount);
  HDPS_CUDA_CHECK(cudaStreamSynchronize(reader));
  return Down(copy, kCount)[17];
}

TEST(CudaOnCpu, AMissingEventIsSeenInTheNumbers) {
  std::set<float> with, without;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    cuda_on_cpu::SetSeed(seed);
    with.insert(ReadAcrossStreams(true));
    without.insert(ReadAcrossStreams(false));
  }
  EXPECT_EQ(with, std::set<float>{2.0f});
  EXPECT_TRUE(without.contains(1.0f));
}

TEST(CudaOnCpu, PinnedMemoryIsReadLateAndOtherAtOnce) {
  for (const bool pinned : {false, true}) {
    const CudaStream stream;
    CudaArray<float> data;
    data.Reserve(1);
    float* host = nullptr;
    std::vector<float> pageable(1);
    if (pinned) HDPS_CUDA_CHECK(cudaMallocHost(&host, sizeof(float)));
    float* const from = pinned ? host : pageable.data();
    *from = 3;
    HDPS_CUDA_CHECK(
        cudaMemcpyAsync(data.data(), from, sizeof(float), cudaMemcpyHostToDevice, stream));
    *from = 4;
    HDPS_CUDA_CHECK(cudaStreamSynchronize(stream));
    EXPECT_EQ(Down(data, 1)[0], pinned ? 4 : 3);
    if (pinned) HDPS_CUDA_CHECK(cudaFreeHost(host));
  }
}

TEST(CudaOnCpuDeathTest, AnIndexOutOfBoundsEndsTheProgram) {
  const auto write_behind = [] {
    const CudaStream stream;
    CudaArray<float> data;
    data.Reserve(kCount);
    StartKernel(Fill, BlocksFor(kCount + 1), kThreadsABlock, stream, data.data(), kCount + 1, 1.0f);
    HDPS_CUDA_CHECK(cudaStreamSynchronize(stream));
  };
  EXPECT_DEATH(write_behind(), "behind an allocation of 4000|use-after-poison");
}

TEST(CudaOnCpuDeathTest, AHostPointerGivenToAKernelEndsTheProgram) {
  std::vector<float> host(kCount);
  const CudaStream stream;
  EXPECT_DEATH(StartKernel(Fill, 1, kThreadsABlock, stream, host.data(), kCount, 1.0f),
               "points to the host's memory");
}

TEST(CudaOnCpuDeathTest, TheHostCannotReadADevicesMemory) {
  CudaArray<float> data;
  data.Reserve(kCount);
  EXPECT_DEATH(EXPECT_EQ(data.data()[3], 0), "host has touched a device's memory|SEGV");
}

TEST(CudaOnCpuDeathTest, AWaitWithoutAnEndIsNotWaitedFor) {
  CudaArray<float> data;
  data.Reserve(1);
  EXPECT_DEATH(cudaFree(data.data() + 1), "cudaFree of what cudaMalloc has not given");
}

TEST(CudaOnCpu, MemoryHasALimit) {
  size_t free = 0, total = 0;
  HDPS_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  void* data = nullptr;
  EXPECT_EQ(cudaMalloc(&data, free + 1), cudaErrorMemoryAllocation);
  HDPS_CUDA_CHECK(cudaMalloc(&data, 1 << 20));
  size_t left = 0;
  HDPS_CUDA_CHECK(cudaMemGetInfo(&left, &total));
  EXPECT_EQ(left, free - (1 << 20));
  HDPS_CUDA_CHECK(cudaFree(data));
}

TEST(CudaOnCpu, HalvesAreRoundedToTheNearest) {
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {  // All that are finite and not negative.
    const auto half = static_cast<uint16_t>(bits);
    const float value = __half2float(__ushort_as_half(half));
    ASSERT_EQ(__half_as_ushort(__float2half_rn(value)), half);
    if (bits + 1 == 0x7c00) break;
    const float next = __half2float(__ushort_as_half(static_cast<uint16_t>(bits + 1)));
    const float middle = (value + next) / 2;
    ASSERT_EQ(__half_as_ushort(__float2half_rn(middle)), bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(__half_as_ushort(__float2half_rn(std::nextafter(middle, 1e9f))), bits + 1);
  }
}

}  // namespace
}  // namespace hdps
