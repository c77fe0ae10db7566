// How device code fails: errors after a kernel stick to the context, so they end the process.
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

// Blocks of kThreadsABlock for one thread an item.
inline unsigned BlocksFor(size_t items) {
  return static_cast<unsigned>((items + kThreadsABlock - 1) / kThreadsABlock);
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
      HDPS_CUDA_CHECK(cudaFree(data_));
      data_ = nullptr;
      HDPS_CUDA_CHECK(cudaMalloc(&data_, size * sizeof(T)));
      size_ = size;
    }
    return data_;
  }
  // From pageable host memory, which may be reused at once.
  void Upload(const T* from, size_t size, cudaStream_t stream) {
    Reserve(size);
    if (size == 0) return;
    HDPS_CUDA_CHECK(cudaMemcpyAsync(data_, from, size * sizeof(T), cudaMemcpyHostToDevice, stream));
  }
  T* data() const { return data_; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace hdps
