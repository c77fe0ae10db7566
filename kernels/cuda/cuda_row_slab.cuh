// Operations on rows of a slab on the GPU, and their scratch memory.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <span>

#include "kernels/cuda/cuda_check.cuh"
#include "kernels/cuda/cuda_staging.cuh"
#include "kernels/dense_ops.h"

namespace hdps {

struct RowUpdate;

// The functions of DenseOps with the same names, on a stream. Slots are copied to the device once;
// of rows only those outside are copied, and whole rows that are read or written.
//
// Invariant: what a call uploads has been sent before its kernels are put on the stream.
class CudaRowSlabs {
 public:
  // `stream` and `staging` belong to the ops that own the slabs.
  CudaRowSlabs(cudaStream_t stream, CudaStaging& staging) : stream_(stream), staging_(staging) {}

  void Load(std::span<const uint32_t> slots, std::unique_ptr<SlabSlots>* loaded);
  void BringOutside(SlabSlots& slots, uint32_t dim, std::span<const float> outside, float* rows);
  void Gather(SlabSlots& slots, const RowSlab& slab, float* rows);
  void FetchOutside(SlabSlots& slots, uint32_t dim, const float* rows, std::span<float> to);
  void Update(const RowUpdate& update, SlabSlots& slots, const float* gradients,
              const RowSlab& slab, float* not_finite);
  void FetchSquares(const RowUpdate& update, SlabSlots& slots, const float* gradients,
                    const RowSlab& slab, std::span<double> squares, float* not_finite);
  void Scatter(Write write, SlabSlots& slots, const float* rows, float scale, const RowSlab& slab);
  void UpdateFirst(const RowUpdate& update, size_t count, const float* gradients,
                   const RowSlab& slab);
  void ReadRows(SlabSlots& slots, std::span<const SlabRows<float>> rows);
  void WriteRows(SlabSlots& slots, std::span<const SlabRows<const float>> rows);

 private:
  // `slots` is on the device, in the form of CudaSlabSlots; null: row i is in slot i.
  void UpdateSlots(const RowUpdate& update, size_t n, const uint32_t* slots, const float* gradients,
                   const RowSlab& slab, float* not_finite);

  const cudaStream_t stream_;
  CudaStaging& staging_;
  CudaArray<float> factors_{staging_.capture()};
};

}  // namespace hdps
