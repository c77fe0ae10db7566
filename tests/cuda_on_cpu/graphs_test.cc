// Tests the mistakes with graphs that the emulation detects, and CudaCapture, which captures the
// device's work.
#include <gtest/gtest.h>

#include <vector>

#include "kernels/cuda/cuda_capture.cuh"
#include "kernels/cuda/cuda_check.cuh"
#include "kernels/cuda/cuda_memory.cuh"
#include "tests/cuda_on_cpu/stand_in.h"

namespace hdps {
namespace {

using cuda_on_cpu::Counters;
using cuda_on_cpu::CountersNow;

constexpr size_t kCount = 100;

__global__ void AddTo(float* data, size_t count, float value) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) data[i] += value;
}

void Add(cudaStream_t stream, float* data, float value) {
  StartKernel(AddTo, BlocksFor(kCount), kThreadsABlock, stream, data, kCount, value);
}

void Zero(cudaStream_t stream, float* data) {
  HDPS_CUDA_CHECK(cudaMemsetAsync(data, 0, kCount * sizeof(float), stream));
}

float First(cudaStream_t stream, const float* data) {
  float value = 0;
  HDPS_CUDA_CHECK(cudaStreamSynchronize(stream));
  HDPS_CUDA_CHECK(cudaMemcpy(&value, data, sizeof(value), cudaMemcpyDeviceToHost));
  return value;
}

// Returns the work that `calls` put on a stream.
template <typename Calls>
cudaGraph_t Captured(cudaStream_t stream, const Calls& calls) {
  HDPS_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  calls();
  cudaGraph_t graph = nullptr;
  HDPS_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  return graph;
}

// Makes a call that a capture forbids; returns its error, and that of the capture's end.
template <typename Call>
void ExpectForbidden(const char* what, cudaError_t wanted, const Call& call) {
  SCOPED_TRACE(what);
  const CudaStream stream;
  const CudaEvent before;
  HDPS_CUDA_CHECK(cudaEventRecord(before, stream));
  HDPS_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  EXPECT_EQ(call(stream, before), wanted);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(graph, nullptr);
}

TEST(GraphsOnCpu, WhatACaptureForbidsMakesItInvalid) {
  constexpr cudaError_t kUnsupported = cudaErrorStreamCaptureUnsupported;
  CudaArray<float> data;
  float* const there = data.Reserve(kCount);
  ExpectForbidden("cudaMalloc", kUnsupported, [](cudaStream_t, cudaEvent_t) {
    void* memory = nullptr;
    return cudaMalloc(&memory, 4);
  });
  ExpectForbidden("cudaMallocHost", kUnsupported, [](cudaStream_t, cudaEvent_t) {
    void* memory = nullptr;
    return cudaMallocHost(&memory, 4);
  });
  ExpectForbidden("cudaFree", kUnsupported,
                  [there](cudaStream_t, cudaEvent_t) { return cudaFree(there); });
  ExpectForbidden("cudaStreamSynchronize", kUnsupported,
                  [](cudaStream_t stream, cudaEvent_t) { return cudaStreamSynchronize(stream); });
  ExpectForbidden("cudaDeviceSynchronize", kUnsupported,
                  [](cudaStream_t, cudaEvent_t) { return cudaDeviceSynchronize(); });
  ExpectForbidden("cudaEventSynchronize", kUnsupported,
                  [](cudaStream_t, cudaEvent_t event) { return cudaEventSynchronize(event); });
  ExpectForbidden("cudaMemcpy", kUnsupported, [there](cudaStream_t, cudaEvent_t) {
    float value = 0;
    return cudaMemcpy(&value, there, sizeof(value), cudaMemcpyDeviceToHost);
  });
  ExpectForbidden(
      "an event of work outside", cudaErrorStreamCaptureIsolation,
      [](cudaStream_t stream, cudaEvent_t event) { return cudaStreamWaitEvent(stream, event, 0); });
  ExpectForbidden("the legacy stream", cudaErrorStreamCaptureImplicit,
                  [there](cudaStream_t, cudaEvent_t) {
                    cuda_on_cpu::StartOnCpu(AddTo, 1, 32, nullptr, there, size_t{1}, 1.0f);
                    return cudaGetLastError();
                  });
}

TEST(GraphsOnCpu, AnEventOfACaptureIsNotWaitedFor) {
  const CudaStream stream;
  const CudaEvent event;
  cudaGraphDestroy(Captured(stream, [&] { HDPS_CUDA_CHECK(cudaEventRecord(event, stream)); }));
  EXPECT_EQ(cudaEventSynchronize(event), cudaErrorCapturedEvent);
  HDPS_CUDA_CHECK(cudaEventRecord(event, stream));
  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
}

TEST(GraphsOnCpu, AGraphRunsWhenItIsLaunchedAndTakesOnlyTheSameNodes) {
  const CudaStream stream;
  CudaArray<float> data;
  float* const there = data.Reserve(kCount);
  Zero(stream, there);
  const cudaGraph_t one = Captured(stream, [&] { Add(stream, there, 1); });
  const cudaGraph_t two = Captured(stream, [&] { Add(stream, there, 2); });
  const cudaGraph_t longer = Captured(stream, [&] {
    Zero(stream, there);
    Add(stream, there, 3);
  });
  EXPECT_EQ(First(stream, there), 0) << "a capture computes nothing";
  cudaGraphExec_t whole = nullptr;
  HDPS_CUDA_CHECK(cudaGraphInstantiate(&whole, one, 0));
  HDPS_CUDA_CHECK(cudaGraphLaunch(whole, stream));
  HDPS_CUDA_CHECK(cudaGraphLaunch(whole, stream));
  EXPECT_EQ(First(stream, there), 2);
  cudaGraphExecUpdateResultInfo difference;
  HDPS_CUDA_CHECK(cudaGraphExecUpdate(whole, two, &difference));
  EXPECT_EQ(cudaGraphExecUpdate(whole, longer, &difference), cudaErrorGraphExecUpdateFailure);
  HDPS_CUDA_CHECK(cudaGraphLaunch(whole, stream));
  EXPECT_EQ(First(stream, there), 4) << "it is as before the update that failed";
  for (const cudaGraph_t graph : {one, two, longer}) cudaGraphDestroy(graph);
  cudaGraphExecDestroy(whole);
}

TEST(GraphsOnCpuDeathTest, AStaleAddressInAGraphEndsTheProgram) {
  const CudaStream stream;
  cudaGraphExec_t whole = nullptr;
  {
    CudaArray<float> data;
    float* const there = data.Reserve(kCount);
    const cudaGraph_t graph = Captured(stream, [&] { Add(stream, there, 1); });
    HDPS_CUDA_CHECK(cudaGraphInstantiate(&whole, graph, 0));
    cudaGraphDestroy(graph);
  }
  EXPECT_DEATH(cudaGraphLaunch(whole, stream), "points to device memory that is not allocated");
  cudaGraphExecDestroy(whole);
}

// ---- CudaCapture.

// A step that zeroes and then adds 1 `times` times.
void Step(CudaCapture* capture, cudaStream_t stream, CudaArray<float>* data, int times) {
  capture->BeginStep();
  capture->Begin();
  float* const there = data->Reserve(kCount);
  Zero(stream, there);
  for (int i = 0; i < times; ++i) {
    capture->Begin();
    Add(stream, there, 1);
  }
  capture->EndStep();
}

TEST(CudaCapture, AGraphIsBuiltOnceForEachOrderOfNodes) {
  const CudaStream stream;
  CudaCapture capture(stream);
  CudaArray<float> data(capture);
  const std::vector<int> steps = {2, 2, 3, 2, 3, 3};
  for (const int times : steps) {
    Step(&capture, stream, &data, times);
    EXPECT_EQ(First(stream, data.data()), static_cast<float>(times));
  }
  EXPECT_EQ(capture.counts().launched, 5u) << "the first step is not captured";
  EXPECT_EQ(capture.counts().built, 2u);
  EXPECT_EQ(capture.counts().updated, 3u);
}

TEST(CudaCapture, WhereMemoryGrowsTheRestOfTheStepIsNotCaptured) {
  const CudaStream stream;
  CudaCapture capture(stream);
  CudaArray<float> data(capture), more(capture);
  Step(&capture, stream, &data, 1);
  capture.BeginStep();
  capture.Begin();
  Add(stream, data.data(), 1);
  float* const grown = more.Reserve(kCount);
  capture.Begin();
  Zero(stream, grown);
  Add(stream, grown, 5);
  capture.EndStep();
  EXPECT_EQ(First(stream, data.data()), 2);
  EXPECT_EQ(First(stream, grown), 5);
  EXPECT_EQ(capture.counts().launched, 1u) << "what came before the memory grew";
}

TEST(CudaCapture, AnEventIsBehindTheGraph) {
  const CudaStream stream, other;
  const CudaEvent event;
  CudaCapture capture(stream);
  CudaArray<float> data(capture);
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    cuda_on_cpu::SetSeed(seed);
    Step(&capture, stream, &data, 1);
    capture.BeginStep();
    capture.Begin();
    Add(stream, data.data(), 1);
    capture.Record(event);
    capture.EndStep();
    HDPS_CUDA_CHECK(cudaStreamWaitEvent(other, event, 0));
    Add(other, data.data(), 1);
    EXPECT_EQ(First(other, data.data()), 3);
  }
}

TEST(CudaCapture, WhatIsRefusedIsComputedWithoutGraphs) {
  cuda_on_cpu::RefuseGraphs(true);
  const CudaStream stream;
  CudaCapture capture(stream);
  CudaArray<float> data(capture);
  for (int i = 0; i < 3; ++i) Step(&capture, stream, &data, 4);
  EXPECT_EQ(First(stream, data.data()), 4);
  EXPECT_EQ(capture.counts().launched, 0u);
  cuda_on_cpu::RefuseGraphs(false);
}

}  // namespace
}  // namespace hdps
