// Emulates CUDA's header of this name where kernels are compiled as C++: see ../README.md. It
// declares what the project uses, with the meaning of the CUDA Runtime API.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

// ---- the language.
#define __global__
#define __device__
#define __host__
// The threads of a block run in turns on one host thread.
#define __shared__ static thread_local
#define HDPS_CUDA_ON_CPU 1

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  dim3() = default;
  dim3(unsigned x_, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

namespace cuda_on_cpu {
struct ThreadIds {
  dim3 thread, block, block_size, grid;
};
extern thread_local ThreadIds ids;  // Indexes of the running kernel thread.
}  // namespace cuda_on_cpu
#define threadIdx (::cuda_on_cpu::ids.thread)
#define blockIdx (::cuda_on_cpu::ids.block)
#define blockDim (::cuda_on_cpu::ids.block_size)
#define gridDim (::cuda_on_cpu::ids.grid)

void __syncthreads();
inline float __fadd_rn(float a, float b) { return a + b; }
inline uint32_t __float_as_uint(float x) { return std::bit_cast<uint32_t>(x); }
inline float __uint_as_float(uint32_t x) { return std::bit_cast<float>(x); }
using std::isfinite;
using std::max;
using std::min;

// ---- errors.
enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorNotReady = 600,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
  cudaErrorStreamCaptureIsolation = 905,
  cudaErrorStreamCaptureImplicit = 906,
  cudaErrorCapturedEvent = 907,
  cudaErrorGraphExecUpdateFailure = 910,
};
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();

// ---- devices.
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device);
cudaError_t cudaMemGetInfo(size_t* free, size_t* total);
struct cudaFuncAttributes {};
template <typename Kernel>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, Kernel) {
  return cudaSuccess;
}

// ---- streams and events.
namespace cuda_on_cpu {
struct Stream;
struct Event;
}  // namespace cuda_on_cpu
using cudaStream_t = cuda_on_cpu::Stream*;
using cudaEvent_t = cuda_on_cpu::Event*;
constexpr unsigned cudaStreamDefault = 0, cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2;
constexpr unsigned cudaEventDefault = 0;
cudaError_t cudaStreamCreate(cudaStream_t* stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
// Does a piece of work if any is left.
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
// Requires: both events are done and timed.
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end);
cudaError_t cudaDeviceSynchronize();

// ---- graphs. See ../graphs.cc.
namespace cuda_on_cpu {
struct Graph;
struct Node;
struct Executable;
}  // namespace cuda_on_cpu
using cudaGraph_t = cuda_on_cpu::Graph*;
using cudaGraphNode_t = const cuda_on_cpu::Node*;
using cudaGraphExec_t = cuda_on_cpu::Executable*;
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };
enum cudaGraphNodeType {
  cudaGraphNodeTypeKernel = 0,
  cudaGraphNodeTypeMemcpy = 1,
  cudaGraphNodeTypeMemset = 2,
};
struct cudaGraphExecUpdateResultInfo {};
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count);
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* whole, cudaGraph_t graph, unsigned long long);
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t whole, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* difference);
cudaError_t cudaGraphLaunch(cudaGraphExec_t whole, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t whole);

// ---- memory.
enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault,
};
namespace cuda_on_cpu {
cudaError_t Allocate(void** data, size_t bytes);
cudaError_t AllocatePinned(void** data, size_t bytes);
}  // namespace cuda_on_cpu
template <typename T>
cudaError_t cudaMalloc(T** data, size_t bytes) {
  return cuda_on_cpu::Allocate(reinterpret_cast<void**>(data), bytes);
}
template <typename T>
cudaError_t cudaMallocHost(T** data, size_t bytes) {
  return cuda_on_cpu::AllocatePinned(reinterpret_cast<void**>(data), bytes);
}
cudaError_t cudaFree(void* data);
cudaError_t cudaFreeHost(void* data);
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream = nullptr);
cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream = nullptr);

// ---- kernels.
namespace cuda_on_cpu {
// Fails if an argument contains an address of host memory.
void CheckArgument(const void* argument, size_t bytes);
template <typename Argument>
void CheckCopy(Argument argument) {
  // Padding may hold old stack contents. A compiler that cannot clear it checks only what has none.
#if __has_builtin(__builtin_clear_padding)
  __builtin_clear_padding(&argument);
  CheckArgument(&argument, sizeof(argument));
#else
  if constexpr (std::has_unique_object_representations_v<Argument>) {
    CheckArgument(&argument, sizeof(argument));
  }
#endif
}
void Launch(cudaStream_t stream, dim3 grid, unsigned block, std::function<void()> thread,
            std::function<void()> check);

template <typename... Parameters, typename... Arguments>
void StartOnCpu(void (*kernel)(Parameters...), dim3 grid, unsigned block, cudaStream_t stream,
                const Arguments&... arguments) {
  const auto check = [=] { (CheckCopy(arguments), ...); };
  check();
  Launch(
      stream, grid, block, [=] { kernel(static_cast<Parameters>(arguments)...); }, check);
}
}  // namespace cuda_on_cpu
