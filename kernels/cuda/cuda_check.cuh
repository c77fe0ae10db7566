// How device code fails: errors after a kernel stick to the context, so they end the process.
#pragma once

#include <cuda_runtime.h>
#include <glog/logging.h>

#include <string>
#include <utility>

#include "common/base/byte_count.h"
#include "kernels/device_memory_full.h"

#define HDPS_CUDA_CHECK(call)                                     \
  do {                                                            \
    const cudaError_t hdps_cuda_error_ = (call);                  \
    CHECK(hdps_cuda_error_ == cudaSuccess)                        \
        << #call << ": " << cudaGetErrorString(hdps_cuda_error_); \
  } while (false)

namespace hdps {

inline constexpr unsigned kThreadsABlock = 256;

// Blocks of kThreadsABlock for one thread an item.
inline unsigned BlocksFor(size_t items) {
  return static_cast<unsigned>((items + kThreadsABlock - 1) / kThreadsABlock);
}

// kernel(arguments...) by `grid` blocks of as many threads. Compiled as C++, by what stands in for
// CUDA: see tests/cuda_on_cpu.
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

// A stream that waits for no other, whose end waits for what is on it.
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

// Orders streams; without times.
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

inline constexpr char kNeedLessDeviceMemory[] =
    "; a smaller train.batch_size, more train.micro_batches, a smaller model.vocab_cache_size or "
    "model.device=cpu would do";

// Memory of the device of the calling thread. Throws DeviceMemoryFull.
template <typename T>
T* CudaAllocate(size_t size) {
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, size * sizeof(T));
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // Whoever asks next is not to hear of it.
    size_t free = 0, total = 0;
    HDPS_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    throw DeviceMemoryFull("the GPU's memory is full: " + ShowByteCount(size * sizeof(T)) +
                           " more are needed, " + ShowByteCount(free) + " of " +
                           ShowByteCount(total) + " are free" + kNeedLessDeviceMemory);
  }
  HDPS_CUDA_CHECK(error);
  return static_cast<T*>(data);
}

// Device memory that grows on demand; what it held is lost when it grows.
template <typename T>
class CudaArray {
 public:
  CudaArray() = default;
  ~CudaArray() { cudaFree(data_); }
  CudaArray(const CudaArray&) = delete;
  CudaArray& operator=(const CudaArray&) = delete;

  T* Reserve(size_t size) {
    if (size > size_) {
      size_ = 0;
      HDPS_CUDA_CHECK(cudaFree(std::exchange(data_, nullptr)));
      data_ = CudaAllocate<T>(size);
      size_ = size;
    }
    return data_;
  }
  T* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace hdps
