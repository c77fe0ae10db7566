// Memory of a device.
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
  // Of a stream whose steps are captured: it grows between two graphs.
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
