// Work on rows of a slab that is on the GPU, and the scratch memory it needs.
#pragma once

#include <cuda_runtime.h>

#include <span>
#include <vector>

#include "kernels/cuda/cuda_check.cuh"
#include "kernels/host/row_slab.h"

namespace hdps {

// The functions of DenseOps of the same names, on a stream. Only rows outside the slab travel
// between host and device in Gather and DownloadOutside.
//
// Invariant: between calls nothing on the stream reads the host's scratch (pageable memory is
// copied before the call that uploads it returns).
class CudaRowSlabs {
 public:
  void Gather(cudaStream_t stream, const RowSlab& slab, std::span<const uint32_t> slots,
              std::span<const float> outside, float* rows);
  void DownloadOutside(cudaStream_t stream, std::span<const uint32_t> slots, uint32_t dim,
                       const float* rows, std::span<float> to);
  bool Update(cudaStream_t stream, const RowUpdate& update, std::span<const uint32_t> slots,
              const float* gradients, const RowSlab& slab);
  void Read(cudaStream_t stream, const RowSlab& slab, std::span<const uint32_t> slots,
            std::span<float> to);
  void Write(cudaStream_t stream, std::span<const float> from, std::span<const uint32_t> slots,
             const RowSlab& slab);

 private:
  void Upload(cudaStream_t stream, std::span<const uint32_t> slots);

  CudaArray<uint32_t> slots_;  // Or other positions of rows.
  CudaArray<float> scratch_;
  CudaArray<int> bad_;
  std::vector<uint32_t> sources_;
  std::vector<float> packed_;
};

}  // namespace hdps
