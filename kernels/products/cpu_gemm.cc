// Matrix products in fp32 by one call of oneDNN's sgemm.
#include <glog/logging.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>

#include "common/platform/memory_full.h"

#include "kernels/products/gemm.h"
#include "kernels/products/product_library.h"
#include "kernels/products/small_gemm.h"

namespace hdps {
namespace {

// Floats of b up to which the loop for small products is the faster: those of a part of the
// second-level cache.
constexpr size_t kSmallFloats = size_t{1} << 17;

// c[r, :] += bias, then negative values become zero when `relu`.
void AddBiasActivate(const float* bias, bool relu, Matrix c) {
  if (bias == nullptr && !relu) return;
  for (size_t r = 0; r < c.rows; ++r) {
    float* __restrict row = c.Row(r);
    if (bias != nullptr) {
      for (size_t j = 0; j < c.cols; ++j) row[j] += bias[j];
    }
    if (relu) {
      for (size_t j = 0; j < c.cols; ++j) row[j] = row[j] > 0.0f ? row[j] : 0.0f;
    }
  }
}

}  // namespace

std::string CpuArithmetic() {
  return std::string(VectorWidthName(WidestVectors())) + " vectors, oneDNN at " +
         NameOfProductLibraryWidth();
}

void BlasGemm(const GemmSpec& spec, ConstMatrix a, ConstMatrix b, Matrix c) {
  const size_t depth = spec.transpose_a ? a.rows : a.cols;
  if (c.rows == 0 || c.cols == 0) return;
  const float beta = spec.write == Write::kAdd ? 1.0f : 0.0f;
  if (depth == 0) {  // oneDNN refuses leading dimensions of 0.
    for (size_t r = 0; beta == 0.0f && r < c.rows; ++r) std::fill_n(c.Row(r), c.cols, 0.0f);
  } else {
    PrepareProductLibrary();
    const auto letter_of = [](bool transpose) { return transpose ? 'T' : 'N'; };
    const auto as_dim = [](size_t value) { return static_cast<dnnl_dim_t>(value); };
    const dnnl_status_t status =
        dnnl_sgemm(letter_of(spec.transpose_a), letter_of(spec.transpose_b), as_dim(c.rows),
                   as_dim(c.cols), as_dim(depth), 1.0f, a.data, as_dim(a.stride), b.data,
                   as_dim(b.stride), beta, c.data, as_dim(c.stride));
    if (status == dnnl_out_of_memory) throw MemoryFull(uint64_t{0});
    CHECK_EQ(status, dnnl_success) << c.rows << " x " << c.cols << " x " << depth;
  }
  AddBiasActivate(spec.bias, spec.relu, c);
}

void OneThreadGemm(const GemmSpec& spec, ConstMatrix a, ConstMatrix b, Matrix c) {
  static const SmallGemmLoop multiply = SmallGemmOfThisMachine();
  const size_t depth = spec.transpose_a ? a.rows : a.cols;
  if (spec.transpose_b || depth * c.cols > kSmallFloats || c.cols % kSmallProductCols != 0) {
    return BlasGemm(spec, a, b, c);
  }
  SmallGemm small{.a = a.data,
                  .b = b.data,
                  .b_stride = b.stride,
                  .c = c.data,
                  .c_stride = c.stride,
                  .rows = c.rows,
                  .depth = depth,
                  .cols = c.cols,
                  .write = spec.write};
  small.a_row = spec.transpose_a ? 1 : a.stride;
  small.a_depth = spec.transpose_a ? a.stride : 1;
  multiply(small);
  AddBiasActivate(spec.bias, spec.relu, c);
}

}  // namespace hdps
