// Error checks of device code: errors after a kernel stick to the context, so they end the process.
#pragma once

#include <cuda_runtime.h>
#include <glog/logging.h>

#define HDPS_CUDA_CHECK(call)                                     \
  do {                                                            \
    const cudaError_t hdps_cuda_error_ = (call);                  \
    CHECK(hdps_cuda_error_ == cudaSuccess)                        \
        << #call << ": " << cudaGetErrorString(hdps_cuda_error_); \
  } while (false)

namespace hdps {

inline constexpr unsigned kThreadsABlock = 256;

// Returns the number of blocks of kThreadsABlock threads for one thread an item.
inline unsigned BlocksFor(size_t items) {
  return static_cast<unsigned>((items + kThreadsABlock - 1) / kThreadsABlock);
}

// Runs kernel(arguments...) by `grid` blocks of `threads` threads each. Compiled as C++ it runs on
// the CPU stand-in for CUDA: see tests/cuda_on_cpu.
template <typename... Parameters, typename... Arguments>
void StartKernel(void (*kernel)(Parameters...), dim3 grid, unsigned threads, cudaStream_t stream,
                 const Arguments&... arguments) {
#ifdef __CUDACC__
  kernel<<<grid, threads, 0, stream>>>(arguments...);
#else
  cuda_on_cpu::StartOnCpu(kernel, grid, threads, stream, arguments...);
#endif
  HDPS_CUDA_CHECK(cudaGetLastError());
}

// A stream that does not synchronize with the default stream. Its destructor waits for its work.
class CudaStream {
 public:
  CudaStream() { HDPS_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~CudaStream() {
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
  }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// An event that orders streams and records no time.
class CudaEvent {
 public:
  CudaEvent() { HDPS_CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }
  ~CudaEvent() { cudaEventDestroy(event_); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace hdps
