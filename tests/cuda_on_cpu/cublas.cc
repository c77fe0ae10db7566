// Products by plain loops, added up in order of depth.
#include <cublas_v2.h>

#include <vector>

#include "tests/cuda_on_cpu/engine.h"

namespace cuda_on_cpu {

struct Blas {
  cudaStream_t stream = nullptr;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
};

namespace {

// To as many bits behind the point as are left, of two as near the even one.
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

// op(a)[m, k] op(b)[k, n], by columns.
struct Product {
  bool transpose_a, transpose_b;
  size_t m, n, k;
  float alpha, beta;
  const float *a, *b;
  float* c;
  size_t lda, ldb, ldc;
  int bits_dropped;

  void Run() const {
    std::vector<float> column(m), of_a(m * k);
    for (size_t p = 0; p < k; ++p) {
      for (size_t i = 0; i < m; ++i) {
        of_a[p * m + i] = Rounded(transpose_a ? a[i * lda + p] : a[p * lda + i], bits_dropped);
      }
    }
    for (size_t j = 0; j < n; ++j) {
      std::fill(column.begin(), column.end(), 0.0f);
      for (size_t p = 0; p < k; ++p) {
        const float of_b = Rounded(transpose_b ? b[p * ldb + j] : b[j * ldb + p], bits_dropped);
        for (size_t i = 0; i < m; ++i) column[i] += of_a[p * m + i] * of_b;
      }
      for (size_t i = 0; i < m; ++i) {
        float& to = c[j * ldc + i];
        to = beta == 0 ? alpha * column[i] : alpha * column[i] + beta * to;
      }
    }
  }
};

}  // namespace
}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

const char* cublasGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_INVALID_VALUE";
}
cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  *handle = new Blas();
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  handle->math = mode;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t, cublasAtomicsMode_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                            int m, int n, int k, const void* alpha, const void* a, cudaDataType,
                            int lda, const void* b, cudaDataType, int ldb, const void* beta,
                            void* c, cudaDataType, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t) {
  const bool transpose_a = op_a == CUBLAS_OP_T, transpose_b = op_b == CUBLAS_OP_T;
  const bool exact = compute == CUBLAS_COMPUTE_32F_PEDANTIC;
  if (m < 0 || n < 0 || k < 0 || ldc < std::max(1, m) || lda < std::max(1, transpose_a ? k : m) ||
      ldb < std::max(1, transpose_b ? n : k) || (handle->math == CUBLAS_PEDANTIC_MATH && !exact)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const auto size = [](int value) { return static_cast<size_t>(value); };
  const Product product{transpose_a,
                        transpose_b,
                        size(m),
                        size(n),
                        size(k),
                        *static_cast<const float*>(alpha),
                        *static_cast<const float*>(beta),
                        static_cast<const float*>(a),
                        static_cast<const float*>(b),
                        static_cast<float*>(c),
                        size(lda),
                        size(ldb),
                        size(ldc),
                        BitsDropped(compute)};
  CheckCopy(product);
  Engine::Get().Add(handle->stream, [product] {
    ++Engine::Get().counters.products;
    product.Run();
    return true;
  });
  return CUBLAS_STATUS_SUCCESS;
}
