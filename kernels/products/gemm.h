// Matrix products: the description of a product, and one tile computed by BLAS.
#pragma once

#include <string>

#include "kernels/matrix.h"

namespace hdps {

// c = op(a) op(b), then the following fields in their order.
struct GemmSpec {
  bool transpose_a = false, transpose_b = false;
  Write write = Write::kOver;   // kAdd: c += op(a) op(b).
  const float* bias = nullptr;  // [c.cols], added to every row; null: none.
  bool relu = false;            // Negative results become zero.
  // A row of c has the same bits beside however many others. Without it a library adds up the last
  // rows of a product, and a lone one, in another way. Only without transpose_a.
  bool rows_alike = false;

  GemmSpec WithRowsAlike(bool alike) const {
    GemmSpec with = *this;
    with.rows_alike = alike;
    return with;
  }
};

// Computes the product by one sgemm call on the calling thread; the bits depend on the shapes and
// the machine's vector width; with `rows_alike` of the shapes only on those of op(b).
void BlasGemm(const GemmSpec& spec, ConstMatrix a, ConstMatrix b, Matrix c);

// Computes the product on the calling thread: in the loop for small products where it has the form
// for it, where rows are alike in any case, else by BlasGemm().
void OneThreadGemm(const GemmSpec& spec, ConstMatrix a, ConstMatrix b, Matrix c);

// Returns what the bits of products depend on besides their inputs: "avx512 vectors, oneDNN at
// avx512".
std::string CpuArithmetic();

}  // namespace hdps
