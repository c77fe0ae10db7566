// Finds the keys of each row on the device, by sorting the keys' positions by row.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/cuda_check.cuh"
#include "kernels/cuda/cuda_memory.cuh"

namespace hdps {

// Groups the positions of n keys by their rows.
//
// Invariant: the order depends only on the rows; positions of one row are ascending.
class CudaKeySort {
 public:
  explicit CudaKeySort(CudaCapture& capture)
      : row_offsets_(capture),
        counts_(capture),
        sorted_rows_{CudaArray<uint32_t>(capture), CudaArray<uint32_t>(capture)},
        sorted_positions_{CudaArray<uint32_t>(capture), CudaArray<uint32_t>(capture)} {}

  // Sorts the positions of rows [n], each below num_rows. The results are valid until the next
  // call.
  void Sort(cudaStream_t stream, const uint32_t* rows, size_t n, uint32_t num_rows);
  const uint32_t* row_offsets() const { return row_offsets_.data(); }  // [num_rows + 1]
  const uint32_t* positions() const { return positions_; }             // [n]
  const uint32_t* sorted_rows() const { return sorted_; }              // [n]: of the positions.

 private:
  CudaArray<uint32_t> row_offsets_, counts_;
  CudaArray<uint32_t> sorted_rows_[2], sorted_positions_[2];
  const uint32_t* positions_ = nullptr;
  const uint32_t* sorted_ = nullptr;
};

}  // namespace hdps
