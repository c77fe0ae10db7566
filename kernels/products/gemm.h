// Matrix products: the one tile that BLAS computes.
#pragma once

#include <string>

#include "kernels/matrix.h"

namespace hdps {

// c = op(a) op(b), then what the flags say, in the order of the fields.
struct GemmSpec {
  bool transpose_a = false, transpose_b = false;
  Write write = Write::kOver;   // kAdd: c += op(a) op(b).
  const float* bias = nullptr;  // [c.cols], added to every row; null: none.
  bool relu = false;            // Negative results become zero.
};

// By one sgemm call on the calling thread; the bits depend on the shapes and the machine's
// vector width.
void BlasGemm(const GemmSpec& spec, ConstMatrix a, ConstMatrix b, Matrix c);

// What the bits of products depend on beside their inputs: "avx512 vectors, oneDNN at avx512".
std::string CpuArithmetic();

}  // namespace hdps
