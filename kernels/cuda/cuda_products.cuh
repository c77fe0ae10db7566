// Matrix products on the device with what is computed beside them in the same kernel: cuBLASLt's.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>

#include "kernels/matrix.h"
#include "kernels/products/bf16_gemm.h"

namespace hdps {

enum class Precision : uint8_t;

class CudaCapture;  // cuda_capture.cuh

// A matrix in fp32 or in bf16.
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

// c (+)= op(a) op(b), all in the device's memory, then one of the rest. a and b have one format.
struct CudaProduct {
  bool transpose_a = false, transpose_b = false;
  Write write = Write::kOver;
  CudaMatrix a, b, c;

  const void* bias = nullptr;  // [c.cols], in the format of c, added to every row;
  bool relu = false;           // and negative results become zero.
  float* sums_of_b = nullptr;  // [c.cols]: sums of the rows of b, where only a is transposed.

  size_t depth() const { return transpose_a ? a.rows : a.cols; }
};

// Invariant: which of the library's algorithms computes a product is a function of its sizes,
// strides, alignments up to 16 bytes and kind, and of the library and the kind of GPU: it is the
// first that the heuristic names, never the fastest of a trial. So every run and every rank has the
// same bits. Sums that are cut are added up in a step of their own, without atomics.
class CudaProducts {
 public:
  // `capture` is that of the stream.
  CudaProducts(cudaStream_t stream, CudaCapture& capture, Precision precision);
  ~CudaProducts();

  // False: nothing was done, since a size is 0, or the library computes no such thing in one
  // kernel. What has nothing beside the product it always computes.
  bool Run(const CudaProduct& product);

 private:
  class Library;
  const std::unique_ptr<Library> library_;
};

}  // namespace hdps
