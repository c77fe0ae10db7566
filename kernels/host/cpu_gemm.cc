// Matrix products by oneDNN; the only file that includes it.
#include <glog/logging.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>

#include "kernels/host/gemm.h"
#include "kernels/vector_width.h"

// Of the OpenMP library that oneDNN runs on. Declared here since not every compiler brings omp.h.
extern "C" void omp_set_num_threads(int count);

namespace hdps {
namespace {

// oneDNN takes a limit once, before its first product. It has no loops plainer than SSE4.1.
bool LimitVectorsOfLibrary() {
  const std::optional<VectorWidth> limit = VectorWidthLimit();
  if (!limit) return true;
  const dnnl_cpu_isa_t isa = *limit == VectorWidth::kAvx512 ? dnnl_cpu_isa_avx512_core
                             : *limit == VectorWidth::kAvx2 ? dnnl_cpu_isa_avx2
                                                            : dnnl_cpu_isa_sse41;
  CHECK_EQ(dnnl_set_max_cpu_isa(isa), dnnl_success) << "oneDNN was built without a limit of ISA";
  return true;
}
void PrepareLibrary() { [[maybe_unused]] static const bool limited = LimitVectorsOfLibrary(); }

// Whether oneDNN uses these instructions. Those for 8 and 16 bits give sgemm no other bits.
bool LibraryHas(dnnl_cpu_isa_t all) {
  PrepareLibrary();
  return (dnnl_get_effective_cpu_isa() & all) == all;
}

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

VectorWidth WidthOfBlasGemm() {
  return LibraryHas(dnnl_cpu_isa_avx512_core) ? VectorWidth::kAvx512
         : LibraryHas(dnnl_cpu_isa_avx2)      ? VectorWidth::kAvx2
                                              : VectorWidth::kPlain;
}

std::string CpuArithmetic() {
  const VectorWidth width = WidthOfBlasGemm();
  std::string library(VectorWidthName(width));
  if (width == VectorWidth::kPlain) library = LibraryHas(dnnl_cpu_isa_avx) ? "avx" : "sse4.1";
  return std::string(VectorWidthName(WidestVectors())) + " vectors, oneDNN at " + library;
}

void BlasGemm(const GemmSpec& spec, ConstMatrix a, ConstMatrix b, Matrix c) {
  const size_t depth = spec.transpose_a ? a.rows : a.cols;
  if (c.rows == 0 || c.cols == 0) return;
  const float beta = spec.write == Write::kAdd ? 1.0f : 0.0f;
  if (depth == 0) {  // oneDNN refuses leading dimensions of 0.
    for (size_t r = 0; beta == 0.0f && r < c.rows; ++r) std::fill_n(c.Row(r), c.cols, 0.0f);
  } else {
    PrepareLibrary();
    omp_set_num_threads(1);  // Of the calling thread alone, so each one has to say it.
    const auto letter_of = [](bool transpose) { return transpose ? 'T' : 'N'; };
    const auto as_dim = [](size_t value) { return static_cast<dnnl_dim_t>(value); };
    const dnnl_status_t status =
        dnnl_sgemm(letter_of(spec.transpose_a), letter_of(spec.transpose_b), as_dim(c.rows),
                   as_dim(c.cols), as_dim(depth), 1.0f, a.data, as_dim(a.stride), b.data,
                   as_dim(b.stride), beta, c.data, as_dim(c.stride));
    CHECK_EQ(status, dnnl_success) << c.rows << " x " << c.cols << " x " << depth;
  }
  AddBiasActivate(spec.bias, spec.relu, c);
}

}  // namespace hdps
