// Matrix products by OpenBLAS; the only file that includes it.
#include <cblas.h>

#include <algorithm>

#include "kernels/gemm.h"

namespace hdps {

void UseBlasSingleThreaded() { openblas_set_num_threads(1); }

void BlasGemm(const GemmSpec& spec, ConstMatrix a, ConstMatrix b, Matrix c) {
  const auto as_int = [](size_t value) { return static_cast<blasint>(value); };
  const auto order_of = [](bool transpose) { return transpose ? CblasTrans : CblasNoTrans; };
  const size_t depth = spec.transpose_a ? a.rows : a.cols;
  if (c.rows == 0 || c.cols == 0) return;
  const float beta = spec.write == Write::kAdd ? 1.0f : 0.0f;
  if (depth == 0) {  // BLAS refuses leading dimensions of 0.
    for (size_t r = 0; beta == 0.0f && r < c.rows; ++r) std::fill_n(c.Row(r), c.cols, 0.0f);
  } else {
    cblas_sgemm(CblasRowMajor, order_of(spec.transpose_a), order_of(spec.transpose_b),
                as_int(c.rows), as_int(c.cols), as_int(depth), 1.0f, a.data, as_int(a.stride),
                b.data, as_int(b.stride), beta, c.data, as_int(c.stride));
  }
  AddBiasActivate(spec.bias, spec.relu, c);
}

}  // namespace hdps
