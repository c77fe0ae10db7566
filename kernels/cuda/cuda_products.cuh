// Matrix products on the device by cuBLASLt, with other work fused into the same kernel.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>

#include "kernels/matrix.h"
#include "kernels/products/bf16_gemm.h"

namespace hdps {

enum class Precision : uint8_t;

class CudaCapture;  // cuda_capture.cuh

// A matrix in the device's memory, in fp32 or in bf16.
struct CudaMatrix {
  CudaMatrix(const ConstMatrix& m)  // NOLINT: converts on purpose
      : data(m.data), rows(m.rows), cols(m.cols), stride(m.stride) {}
  CudaMatrix(const Matrix& m) : CudaMatrix(ConstMatrix(m)) {}  // NOLINT: likewise
  CudaMatrix(const Bf16Matrix& m)                              // NOLINT: likewise
      : data(m.data), rows(m.rows), cols(m.cols), stride(m.stride), bf16(true) {}
  explicit CudaMatrix(const Bf16Tile& m)
      : CudaMatrix(m.fp32.data != nullptr ? CudaMatrix(m.fp32) : CudaMatrix(m.bf16)) {}

  const void* data;
  size_t rows, cols, stride;
  bool bf16 = false;
};

// c (+)= op(a) op(b), all in the device's memory, then at most one kind of the fused work below.
// a and b have the same format.
struct CudaProduct {
  bool transpose_a = false, transpose_b = false;
  Write write = Write::kOver;
  CudaMatrix a, b, c;

  const void* bias = nullptr;  // [c.cols], in the format of c: added to every row.
  bool relu = false;           // After the bias, negative results become zero.
  float* sums_of_b = nullptr;  // [c.cols]: sums of the rows of b; if only a is transposed.

  size_t depth() const { return transpose_a ? a.rows : a.cols; }
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
