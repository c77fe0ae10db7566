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

// op(a)[m, k] op(b)[k, n], by columns.
struct Product {
  bool transpose_a, transpose_b;
  size_t m, n, k;
  float alpha, beta;
  const float *a, *b;
  float* c;
  size_t lda, ldb, ldc;

  void Run() const {
    std::vector<float> column(m);
    for (size_t j = 0; j < n; ++j) {
      std::fill(column.begin(), column.end(), 0.0f);
      for (size_t p = 0; p < k; ++p) {
        const float of_b = transpose_b ? b[p * ldb + j] : b[j * ldb + p];
        for (size_t i = 0; i < m; ++i) {
          column[i] += (transpose_a ? a[i * lda + p] : a[p * lda + i]) * of_b;
        }
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
cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                           int m, int n, int k, const float* alpha, const float* a, int lda,
                           const float* b, int ldb, const float* beta, float* c, int ldc) {
  const bool transpose_a = op_a == CUBLAS_OP_T, transpose_b = op_b == CUBLAS_OP_T;
  if (m < 0 || n < 0 || k < 0 || ldc < std::max(1, m) || lda < std::max(1, transpose_a ? k : m) ||
      ldb < std::max(1, transpose_b ? n : k)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const auto size = [](int value) { return static_cast<size_t>(value); };
  const Product product{transpose_a, transpose_b, size(m), size(n),   size(k),   *alpha,   *beta,
                        a,           b,           c,       size(lda), size(ldb), size(ldc)};
  CheckCopy(product);
  Engine::Get().Add(handle->stream, [product] {
    ++Engine::Get().counters.products;
    product.Run();
    return true;
  });
  return CUBLAS_STATUS_SUCCESS;
}
