// Computes products by plain loops, summed in order of depth, and their epilogues.
#include <cublasLt.h>

#include <array>
#include <vector>

#include "kernels/cuda/cublas_library.h"
#include "tests/cuda_on_cpu/engine.h"

hdps::Status hdps::CublasStatus() { return Status(); }

namespace cuda_on_cpu {

struct BlasLt {};
struct MatmulDesc {
  cublasComputeType_t compute;
  int32_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;
  uint32_t* mask = nullptr;
  int64_t mask_bits = 0;  // Stride between columns.
};
struct MatrixLayout {
  cudaDataType_t type;
  uint64_t rows, cols;
  int64_t ld;
};
struct MatmulPreference {
  uint64_t workspace_bytes = 0;
  uint32_t reductions = 7;
  std::array<uint32_t, 4> alignments = {256, 256, 256, 256};  // Alignments of a, b, c, d.
};

namespace {

constexpr size_t kWorkspaceBytes = 512;  // Workspace of products with a sum in the epilogue.

// Drops bits of the mantissa, rounding to nearest, ties to even.
float Rounded(float value, int bits_dropped) {
  if (bits_dropped == 0 || !std::isfinite(value)) return value;
  const uint32_t bits = __float_as_uint(value), half = 1u << (bits_dropped - 1);
  const uint32_t even = bits >> bits_dropped & 1u;
  return __uint_as_float((bits + half - 1 + even) >> bits_dropped << bits_dropped);
}

int BitsDropped(cublasComputeType_t compute) {
  return compute == CUBLAS_COMPUTE_32F_FAST_TF32   ? 13
         : compute == CUBLAS_COMPUTE_32F_FAST_16BF ? 16
                                                   : 0;
}

float Get(const void* data, cudaDataType_t type, size_t at) {
  if (type == CUDA_R_32F) return static_cast<const float*>(data)[at];
  return __uint_as_float(uint32_t{static_cast<const uint16_t*>(data)[at]} << 16);
}
void Set(void* data, cudaDataType_t type, size_t at, float value) {
  if (type == CUDA_R_32F) {
    static_cast<float*>(data)[at] = value;
  } else {
    static_cast<uint16_t*>(data)[at] =
        static_cast<uint16_t>(__float_as_uint(Rounded(value, 16)) >> 16);
  }
}

// The problem that an algorithm was chosen for; it serves no other.
struct Chosen {
  uint32_t epilogue, alignments;  // The second has four alignments, a byte each.
  uint64_t transposes, m, n, k;
  uint64_t strides[2];  // Strides of the factors, and of the result.

  bool operator==(const Chosen&) const = default;
};
static_assert(sizeof(Chosen) <= sizeof(cublasLtMatmulAlgo_t));

struct Problem {
  const MatmulDesc& desc;
  const MatrixLayout &a, &b, &c, &d;

  uint64_t depth() const { return desc.transpose_a == CUBLAS_OP_T ? a.rows : a.cols; }
  bool Has(uint32_t bit) const { return (desc.epilogue & bit) != 0; }
  bool WantsBias() const { return Has(4) || Has(CUBLASLT_EPILOGUE_BGRADA); }
  bool WantsMask() const { return Has(128); }
  // Is true if sizes, strides and the epilogue's arguments fit together.
  bool Fits() const {
    const bool ta = desc.transpose_a == CUBLAS_OP_T, tb = desc.transpose_b == CUBLAS_OP_T;
    bool fits = (ta ? a.cols : a.rows) == d.rows && (tb ? b.rows : b.cols) == d.cols;
    fits &= (tb ? b.cols : b.rows) == depth() && c.rows == d.rows && c.cols == d.cols;
    fits &= d.rows > 0 && d.cols > 0 && depth() > 0;
    for (const MatrixLayout* m : {&a, &b, &c, &d}) fits &= m->ld >= static_cast<int64_t>(m->rows);
    fits &= WantsBias() == (desc.bias != nullptr) && WantsMask() == (desc.mask != nullptr);
    fits &= !WantsMask() ||
            (desc.mask_bits % 128 == 0 && desc.mask_bits >= static_cast<int64_t>(d.rows) &&
             reinterpret_cast<uintptr_t>(desc.mask) % 16 == 0);
    return fits;
  }
  Chosen Choice(const std::array<uint32_t, 4>& alignments) const {
    Chosen chosen = {};
    chosen.epilogue = desc.epilogue;
    for (const uint32_t alignment : alignments) {
      chosen.alignments = chosen.alignments << 8 | std::min(alignment, 255u);
    }
    chosen.transposes = static_cast<uint64_t>(desc.transpose_a * 2 + desc.transpose_b);
    for (const MatrixLayout* m : {&a, &b, &d}) {
      chosen.transposes = chosen.transposes << 8 | static_cast<uint64_t>(m->type);
    }
    chosen.m = d.rows;
    chosen.n = d.cols;
    chosen.k = depth();
    chosen.strides[0] = static_cast<uint64_t>(a.ld) << 32 | static_cast<uint64_t>(b.ld);
    chosen.strides[1] = static_cast<uint64_t>(c.ld) << 32 | static_cast<uint64_t>(d.ld);
    return chosen;
  }
  size_t WorkspaceBytes() const { return Has(CUBLASLT_EPILOGUE_BGRADA) ? kWorkspaceBytes : 0; }
};

// Computes op(a)[m, k] op(b)[k, n], all column-major.
struct Product {
  bool transpose_a, transpose_b;
  uint32_t epilogue;
  int bits_dropped;
  size_t m, n, k;
  float alpha, beta;
  const void *a, *b, *c;
  void* d;
  cudaDataType_t type_a, type_b, type_c, type_d;
  void* bias;  // Of the result's type.
  uint32_t* mask;
  void* workspace;
  size_t lda, ldb, ldc, ldd, mask_words, workspace_bytes;

  bool Has(uint32_t bit) const { return (epilogue & bit) != 0; }
  float Finished(float value, size_t i, size_t j) const {
    if (Has(4)) value += Get(bias, type_d, i);
    uint32_t* const word = mask == nullptr ? nullptr : mask + j * mask_words + i / 32;
    const uint32_t bit = 1u << i % 32;
    if (Has(8)) return (*word & bit) != 0 ? value : 0.0f;
    if (!Has(2)) return value;
    if (word != nullptr) *word = value > 0.0f ? *word | bit : *word & ~bit;
    return value > 0.0f ? value : 0.0f;
  }
  void Run() const {
    if (workspace_bytes > 0) std::memset(workspace, 0x5a, workspace_bytes);
    std::vector<float> column(m), of_a(m * k);
    for (size_t p = 0; p < k; ++p) {
      for (size_t i = 0; i < m; ++i) {
        const size_t at = transpose_a ? i * lda + p : p * lda + i;
        of_a[p * m + i] = Rounded(Get(a, type_a, at), bits_dropped);
      }
    }
    if (Has(CUBLASLT_EPILOGUE_BGRADA)) {
      auto* const sums = static_cast<float*>(bias);
      std::fill_n(sums, m, 0.0f);
      for (size_t p = 0; p < k; ++p) {
        for (size_t i = 0; i < m; ++i) {
          sums[i] += Get(a, type_a, transpose_a ? i * lda + p : p * lda + i);
        }
      }
    }
    for (size_t j = 0; j < n; ++j) {
      std::fill(column.begin(), column.end(), 0.0f);
      for (size_t p = 0; p < k; ++p) {
        const size_t at = transpose_b ? p * ldb + j : j * ldb + p;
        const float of_b = Rounded(Get(b, type_b, at), bits_dropped);
        for (size_t i = 0; i < m; ++i) column[i] += of_a[p * m + i] * of_b;
      }
      for (size_t i = 0; i < m; ++i) {
        float value = alpha * column[i];
        if (beta != 0) value += beta * Get(c, type_c, j * ldc + i);
        Set(d, type_d, j * ldd + i, Finished(value, i, j));
      }
    }
  }
};

}  // namespace

void RefuseEpilogues(bool refuse) {
  const auto lock = Engine::Get().Lock();
  Engine::Get().refuse_epilogues = refuse;
}

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS         ? "CUBLAS_STATUS_SUCCESS"
         : status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                                 : "CUBLAS_STATUS_INVALID_VALUE";
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = new BlasLt();
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                                        cudaDataType_t) {
  *desc = new MatmulDesc{compute};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete desc;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  const auto take = [&](auto* to) {
    if (bytes != sizeof(*to)) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(to, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return take(&desc->transpose_a);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return take(&desc->transpose_b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return take(&desc->epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return take(&desc->bias);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return take(&desc->mask);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return take(&desc->mask_bits);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type,
                                          uint64_t rows, uint64_t cols, int64_t ld) {
  *layout = new MatrixLayout{type, rows, cols, ld};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new MatmulPreference();
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  const bool whole = attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
  if (bytes != (whole ? sizeof(uint64_t) : sizeof(uint32_t))) return CUBLAS_STATUS_INVALID_VALUE;
  void* to = &preference->workspace_bytes;
  if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) to = &preference->reductions;
  if (attribute >= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES) {
    to = &preference->alignments[static_cast<size_t>(attribute -
                                                     CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES)];
  }
  std::memcpy(to, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* found) {
  const Problem problem{*desc, *a, *b, *c, *d};
  *found = 0;
  if (wanted < 1 || !problem.Fits()) return CUBLAS_STATUS_INVALID_VALUE;
  {
    const auto lock = Engine::Get().Lock();
    const bool plain = desc->epilogue == CUBLASLT_EPILOGUE_DEFAULT;
    if (Engine::Get().refuse_epilogues && !plain) return CUBLAS_STATUS_NOT_SUPPORTED;
    ++Engine::Get().counters.heuristics;
  }
  // Sums in place depend on the order of threads.
  if ((preference->reductions & 1) != 0) Fail("a product may choose sums in place");
  if (preference->workspace_bytes < problem.WorkspaceBytes()) return CUBLAS_STATUS_NOT_SUPPORTED;
  const Chosen chosen = problem.Choice(preference->alignments);
  std::memcpy(results[0].algo.data, &chosen, sizeof(chosen));
  results[0].workspaceSize = problem.WorkspaceBytes();
  results[0].state = CUBLAS_STATUS_SUCCESS;
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo,
                              void* workspace, size_t workspace_bytes, cudaStream_t stream) {
  const Problem problem{*desc, *a_layout, *b_layout, *c_layout, *d_layout};
  Chosen chosen;
  std::memcpy(&chosen, algo->data, sizeof(chosen));
  if (!problem.Fits()) return CUBLAS_STATUS_INVALID_VALUE;
  const std::array<const void*, 4> data = {a, b, c, d};
  std::array<uint32_t, 4> told;
  for (size_t i = 0; i < data.size(); ++i) {
    told[i] = chosen.alignments >> (8 * (3 - i)) & 255;
    // 256 is stored in a byte.
    const uint32_t whole = told[i] == 255 ? 256 : told[i];
    if (reinterpret_cast<uintptr_t>(data[i]) % whole != 0) return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (!(problem.Choice(told) == chosen)) return CUBLAS_STATUS_INVALID_VALUE;
  if (workspace_bytes < problem.WorkspaceBytes()) return CUBLAS_STATUS_INVALID_VALUE;
  const auto size = [](int64_t value) { return static_cast<size_t>(value); };
  const Product product{desc->transpose_a == CUBLAS_OP_T,
                        desc->transpose_b == CUBLAS_OP_T,
                        desc->epilogue,
                        BitsDropped(desc->compute),
                        d_layout->rows,
                        d_layout->cols,
                        problem.depth(),
                        *static_cast<const float*>(alpha),
                        *static_cast<const float*>(beta),
                        a,
                        b,
                        c,
                        d,
                        a_layout->type,
                        b_layout->type,
                        c_layout->type,
                        d_layout->type,
                        desc->bias,
                        desc->mask,
                        workspace,
                        size(a_layout->ld),
                        size(b_layout->ld),
                        size(c_layout->ld),
                        size(d_layout->ld),
                        size(desc->mask_bits / 32),
                        problem.WorkspaceBytes()};
  const auto check = [product] { CheckCopy(product); };
  check();
  const Work work = [product] {
    ++Engine::Get().counters.products;
    if (product.epilogue != CUBLASLT_EPILOGUE_DEFAULT) ++Engine::Get().counters.epilogues;
    product.Run();
    return true;
  };
  Engine::Get().Add(stream, Node{cudaGraphNodeTypeKernel, work, check});
  return CUBLAS_STATUS_SUCCESS;
}
