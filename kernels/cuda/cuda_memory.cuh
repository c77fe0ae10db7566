// Allocates memory of a device.
#pragma once

#include <cuda_runtime.h>

#include <string>
#include <utility>

#include "common/base/byte_count.h"
#include "kernels/cuda/cuda_capture.cuh"
#include "kernels/cuda/cuda_check.cuh"
#include "kernels/device_memory_full.h"

namespace hdps {

inline constexpr char kNeedLessDeviceMemory[] =
    "; a smaller train.batch_size, more train.micro_batches, a smaller model.vocab_cache_size or "
    "model.device=cpu would do";

// Allocates memory of the calling thread's device. Throws DeviceMemoryFull.
template <typename T>
T* CudaAllocate(size_t size) {
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, size * sizeof(T));
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // Clears the error for later calls.
    size_t free = 0, total = 0;
    HDPS_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    throw DeviceMemoryFull("the GPU's memory is full: " + ShowByteCount(size * sizeof(T)) +
                           " more are needed, " + ShowByteCount(free) + " of " +
                           ShowByteCount(total) + " are free" + kNeedLessDeviceMemory);
  }
  HDPS_CUDA_CHECK(error);
  return static_cast<T*>(data);
}

// Device memory that grows on demand; its contents are lost when it grows.
template <typename T>
class CudaArray {
 public:
  CudaArray() = default;
  // For a stream whose steps are captured: pauses the capture to grow.
  explicit CudaArray(CudaCapture& capture) : capture_(&capture) {}
  ~CudaArray() { cudaFree(data_); }
  CudaArray(const CudaArray&) = delete;
  CudaArray& operator=(const CudaArray&) = delete;

  T* Reserve(size_t size) {
    if (size > size_) {
      if (capture_ != nullptr) capture_->Pause();
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
  CudaCapture* const capture_ = nullptr;
  T* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace hdps
