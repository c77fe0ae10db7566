// Work on rows of a slab that is on the GPU, and the scratch memory it needs.
#pragma once

#include <cuda_runtime.h>

#include <span>
#include <vector>

#include "kernels/cuda/cuda_check.cuh"
#include "kernels/cuda/cuda_staging.cuh"
#include "kernels/host/row_slab.h"

namespace hdps {

// The functions of DenseOps of the same names, on a stream. Only rows outside the slab travel
// between host and device in Gather and FetchOutside.
//
// Invariant: what a call uploads has been sent before its kernels are put on the stream.
class CudaRowSlabs {
 public:
  // Both of the ops whose slabs these are.
  CudaRowSlabs(cudaStream_t stream, CudaStaging& staging) : stream_(stream), staging_(staging) {}

  void Gather(const RowSlab& slab, std::span<const uint32_t> slots, std::span<const float> outside,
              float* rows);
  void FetchOutside(std::span<const uint32_t> slots, uint32_t dim, const float* rows,
                    std::span<float> to);
  bool Update(const RowUpdate& update, std::span<const uint32_t> slots, const float* gradients,
              const RowSlab& slab);
  void UpdateFirst(const RowUpdate& update, size_t count, const float* gradients,
                   const RowSlab& slab);
  void Read(const RowSlab& slab, std::span<const uint32_t> slots, std::span<float> to);
  void Write(std::span<const float> from, std::span<const uint32_t> slots, const RowSlab& slab);

 private:
  // slots: on the device; null: row i is in slot i. Gives where it is told of numbers that are not.
  int* UpdateSlots(const RowUpdate& update, size_t n, const uint32_t* slots, const float* gradients,
                   const RowSlab& slab);

  const cudaStream_t stream_;
  CudaStaging& staging_;
  CudaArray<uint32_t> slots_;  // Or other positions of rows.
  CudaArray<float> scratch_;
  CudaArray<int> bad_;
  std::vector<uint32_t> sources_;
};

}  // namespace hdps
