// Matrix products in fp32 by one call of oneDNN's sgemm.
#include <glog/logging.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <vector>

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

// c = op(a) op(b), or c += op(a) op(b), by the library.
void Sgemm(const GemmSpec& spec, ConstMatrix a, ConstMatrix b, Matrix c) {
  const size_t depth = spec.transpose_a ? a.rows : a.cols;
  const float beta = spec.write == Write::kAdd ? 1.0f : 0.0f;
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

// Computes rows that are too few beside copies of the last one.
void SgemmPadded(const GemmSpec& spec, ConstMatrix a, ConstMatrix b, Matrix c, size_t rows) {
  thread_local std::vector<float> a_rows, c_rows;
  a_rows.resize(rows * a.cols);
  c_rows.resize(rows * c.cols);
  for (size_t r = 0; r < rows; ++r) {
    const size_t from = std::min(r, c.rows - 1);
    std::copy_n(a.Row(from), a.cols, &a_rows[r * a.cols]);
    if (spec.write == Write::kAdd) std::copy_n(c.Row(from), c.cols, &c_rows[r * c.cols]);
  }
  Sgemm(spec, {a_rows.data(), rows, a.cols, a.cols}, b, {c_rows.data(), rows, c.cols, c.cols});
  for (size_t r = 0; r < c.rows; ++r) std::copy_n(&c_rows[r * c.cols], c.cols, c.Row(r));
}

// Computes a product whose rows do not depend on their number, as oneDNN was measured for up to 136
// rows and for the sides of ProductTiles. One row is a product by a vector. With AVX2, blocks of 6
// rows take fused multiply-adds, and so do 4 behind them, but 1 to 3 multiply and then add; long
// products are cut into other blocks, which fit multiples of 64 rows. Requires: !spec.transpose_a.
void SgemmAlike(const GemmSpec& spec, ConstMatrix a, ConstMatrix b, Matrix c) {
  constexpr size_t kWholeRows = 64, kBlock = 6, kHalfBlock = 4;
  if (WidthOfProductLibrary() != VectorWidth::kAvx2) {
    return c.rows == 1 ? SgemmPadded(spec, a, b, c, 2) : Sgemm(spec, a, b, c);
  }
  const size_t whole = c.rows / kWholeRows * kWholeRows;
  const size_t over = (c.rows - whole) % kBlock;
  const size_t last = over < kHalfBlock ? over : over - kHalfBlock;
  const size_t rest = c.rows - whole - last;
  if (whole > 0) Sgemm(spec, a.Rows(0, whole), b, c.Rows(0, whole));
  if (rest > 0) Sgemm(spec, a.Rows(whole, rest), b, c.Rows(whole, rest));
  if (last == 0) return;
  SgemmPadded(spec, a.Rows(whole + rest, last), b, c.Rows(whole + rest, last), kHalfBlock);
}

}  // namespace

std::string CpuArithmetic() {
  return std::string(VectorWidthName(WidestVectors())) + " vectors, oneDNN at " +
         NameOfProductLibraryWidth();
}

void BlasGemm(const GemmSpec& spec, ConstMatrix a, ConstMatrix b, Matrix c) {
  if (c.rows == 0 || c.cols == 0) return;
  if ((spec.transpose_a ? a.rows : a.cols) == 0) {  // oneDNN refuses leading dimensions of 0.
    for (size_t r = 0; spec.write == Write::kOver && r < c.rows; ++r) {
      std::fill_n(c.Row(r), c.cols, 0.0f);
    }
  } else if (spec.rows_alike && !spec.transpose_a) {
    SgemmAlike(spec, a, b, c);
  } else {
    Sgemm(spec, a, b, c);
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
