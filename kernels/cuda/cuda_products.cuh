// Matrix products on the device by cuBLASLt, with other work fused into the same kernel.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>

#include "kernels/matrix.h"

namespace hdps {

enum class Precision : uint8_t;

class CudaCapture;  // cuda_capture.cuh

// c (+)= op(a) op(b), all in the device's memory, then at most one kind of the fused work below.
struct CudaProduct {
  bool transpose_a = false, transpose_b = false;
  Write write = Write::kOver;
  ConstMatrix a, b;
  Matrix c;

  const float* bias = nullptr;  // [c.cols]: added to every row.
  bool relu = false;            // After the bias, negative results become zero.
  float* mask_to = nullptr;     // [MaskFloats(c)]: records which results were positive.
  // Record of an earlier product: results that were not positive there become zero.
  const float* mask = nullptr;
  float* sums_of_b = nullptr;  // [c.cols]: sums of the rows of b; if only a is transposed.

  size_t depth() const { return transpose_a ? a.rows : a.cols; }
  // One bit an element; each row of c takes a multiple of 128 bits.
  static size_t MaskStride(const Matrix& c) { return (c.cols + 127) / 128 * 128; }
  static size_t MaskFloats(const Matrix& c) { return c.rows * MaskStride(c) / 32; }
};

// Invariant: the algorithm for a product depends only on its sizes, strides, alignments up to 16
// bytes and kind, on the library and on the kind of GPU: it is the first that the library's
// heuristic returns, never the fastest of a trial. So every run and every rank has the same bits.
// Partial sums are added up in a step of their own, without atomics.
class CudaProducts {
 public:
  // `capture` captures the stream.
  CudaProducts(cudaStream_t stream, CudaCapture& capture, Precision precision);
  ~CudaProducts();

  // Returns false, and does nothing, if a size is 0 or if the library cannot fuse this work. A
  // product without fused work is always computed.
  bool Run(const CudaProduct& product);

 private:
  class Library;
  const std::unique_ptr<Library> library_;
};

}  // namespace hdps
