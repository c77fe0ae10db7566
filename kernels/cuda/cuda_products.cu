// Caches cuBLASLt's choice for each product, by everything that the choice may depend on.
#include "kernels/cuda/cuda_products.cuh"

#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <map>

#include "common/job/spec/precision.h"
#include "kernels/cuda/cuda_check.cuh"
#include "kernels/cuda/cuda_memory.cuh"
#include "kernels/product_workspace.h"

#define HDPS_CUBLAS_CHECK(call)                                    \
  do {                                                             \
    const cublasStatus_t hdps_status_ = (call);                    \
    CHECK(hdps_status_ == CUBLAS_STATUS_SUCCESS)                   \
        << #call << ": " << cublasLtGetStatusString(hdps_status_); \
  } while (false)

namespace hdps {
namespace {

constexpr size_t kPlansMax = 4096;
// No kernel reads more at once. Better alignment must not choose another algorithm.
constexpr uintptr_t kAlignment = 16;

// The library rounds factors on their way into the product; sums are in fp32. kFp32 agrees with the
// CPU's results up to the rounding of sums.
cublasComputeType_t ComputeTypeOf(Precision precision, const CudaProduct& p) {
  if (p.a.bf16) return CUBLAS_COMPUTE_32F;
  switch (precision) {
    case Precision::kFp32:
      return CUBLAS_COMPUTE_32F_PEDANTIC;
    case Precision::kTf32:
      return CUBLAS_COMPUTE_32F_FAST_TF32;
    case Precision::kBf16:
      return CUBLAS_COMPUTE_32F_FAST_16BF;
  }
  return CUBLAS_COMPUTE_32F_PEDANTIC;
}

// cuBLASLt is column-major, so it sees every matrix transposed: c^T = op(b)^T op(a)^T. Its A is b,
// and the rows of its result are the columns of c, as is the length of a bias.
cublasLtEpilogue_t EpilogueOf(const CudaProduct& p) {
  if (p.sums_of_b != nullptr) return CUBLASLT_EPILOGUE_BGRADA;
  if (!p.relu) return p.bias == nullptr ? CUBLASLT_EPILOGUE_DEFAULT : CUBLASLT_EPILOGUE_BIAS;
  return p.bias == nullptr ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_RELU_BIAS;
}

uint32_t AlignmentOf(const void* data) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  return static_cast<uint32_t>(std::min(kAlignment, address & (~address + 1)));
}
// Returns an address with the alignment of `data` and nothing else in common.
const void* AlignedLike(const void* data) {
  return reinterpret_cast<const void*>(uintptr_t{AlignmentOf(data)});
}

const void* BiasOf(const CudaProduct& p) { return p.sums_of_b == nullptr ? p.bias : p.sums_of_b; }
cudaDataType_t TypeOf(const CudaMatrix& m) { return m.bf16 ? CUDA_R_16BF : CUDA_R_32F; }

// Everything that the choice of an algorithm may depend on.
using PlanKey = std::array<uint64_t, 16>;
PlanKey KeyOf(const CudaProduct& p) {
  return {p.c.rows,
          p.c.cols,
          p.depth(),
          p.a.stride,
          p.b.stride,
          p.c.stride,
          p.transpose_a,
          p.transpose_b,
          p.write == Write::kAdd,
          static_cast<uint64_t>(EpilogueOf(p)),
          p.a.bf16,
          p.c.bf16,
          AlignmentOf(p.a.data),
          AlignmentOf(p.b.data),
          AlignmentOf(p.c.data),
          AlignmentOf(BiasOf(p))};
}

// One product in the library's description.
class Plan {
 public:
  Plan(cublasLtHandle_t handle, Precision precision, const CudaProduct& p);
  ~Plan() {
    for (cublasLtMatrixLayout_t layout : {a_, b_, c_}) cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(desc_);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  bool possible() const { return possible_; }
  size_t workspace_bytes() const { return chosen_.workspaceSize; }
  void Run(cublasLtHandle_t handle, const CudaProduct& p, void* workspace, cudaStream_t stream);

 private:
  template <typename T>
  void Set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    HDPS_CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(desc_, attribute, &value, sizeof(value)));
  }
  // Null: the product has none.
  void SetBias(const void* bias) {
    if (bias != nullptr) Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  }
  void Choose(cublasLtHandle_t handle, const CudaProduct& p);

  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;  // The library's A, B and C.
  cublasLtMatmulHeuristicResult_t chosen_ = {};
  bool possible_ = false;
};

Plan::Plan(cublasLtHandle_t handle, Precision precision, const CudaProduct& p) {
  HDPS_CUBLAS_CHECK(cublasLtMatmulDescCreate(&desc_, ComputeTypeOf(precision, p), CUDA_R_32F));
  const auto order_of = [](bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
  Set(CUBLASLT_MATMUL_DESC_TRANSA, order_of(p.transpose_b));
  Set(CUBLASLT_MATMUL_DESC_TRANSB, order_of(p.transpose_a));
  Set(CUBLASLT_MATMUL_DESC_EPILOGUE, EpilogueOf(p));
  const auto lay = [](const CudaMatrix& m, cublasLtMatrixLayout_t* layout) {
    HDPS_CUBLAS_CHECK(cublasLtMatrixLayoutCreate(layout, TypeOf(m), m.cols, m.rows,
                                                 static_cast<int64_t>(m.stride)));
  };
  lay(p.b, &a_);
  lay(p.a, &b_);
  lay(p.c, &c_);
  Choose(handle, p);
}

void Plan::Choose(cublasLtHandle_t handle, const CudaProduct& p) {
  cublasLtMatmulPreference_t wanted = nullptr;
  HDPS_CUBLAS_CHECK(cublasLtMatmulPreferenceCreate(&wanted));
  const auto set = [wanted](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    HDPS_CUBLAS_CHECK(
        cublasLtMatmulPreferenceSetAttribute(wanted, attribute, &value, sizeof(value)));
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kProductWorkspaceBytes);
  // Partial sums are added in fp32, in order, by a kernel that follows.
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, AlignmentOf(p.b.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, AlignmentOf(p.a.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, AlignmentOf(p.c.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, AlignmentOf(p.c.data));
  SetBias(AlignedLike(BiasOf(p)));  // It looks at no more of it.
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle, desc_, a_, b_, c_, c_, wanted, 1, &chosen_, &found);
  HDPS_CUBLAS_CHECK(cublasLtMatmulPreferenceDestroy(wanted));
  possible_ =
      status == CUBLAS_STATUS_SUCCESS && found > 0 && chosen_.state == CUBLAS_STATUS_SUCCESS;
  CHECK(possible_ || EpilogueOf(p) != CUBLASLT_EPILOGUE_DEFAULT)
      << "cuBLASLt has no product of [" << p.c.rows << ", " << p.depth() << "] and [" << p.depth()
      << ", " << p.c.cols << "]: " << cublasLtGetStatusString(status);
}

void Plan::Run(cublasLtHandle_t handle, const CudaProduct& p, void* workspace,
               cudaStream_t stream) {
  SetBias(BiasOf(p));
  const float one = 1.0f, beta = p.write == Write::kAdd ? 1.0f : 0.0f;
  void* const c = const_cast<void*>(p.c.data);
  HDPS_CUBLAS_CHECK(cublasLtMatmul(handle, desc_, &one, p.b.data, a_, p.a.data, b_, &beta, c, c_, c,
                                   c_, &chosen_.algo, workspace, chosen_.workspaceSize, stream));
}

}  // namespace

class CudaProducts::Library {
 public:
  Library(cudaStream_t stream, CudaCapture& capture, Precision precision)
      : stream_(stream), precision_(precision), workspace_(capture) {
    HDPS_CUBLAS_CHECK(cublasLtCreate(&handle_));
  }
  ~Library() {
    plans_.clear();
    cublasLtDestroy(handle_);
  }

  bool Run(const CudaProduct& p) {
    const PlanKey key = KeyOf(p);
    // A plan that was dropped is chosen again in the same way.
    if (plans_.size() == kPlansMax && !plans_.contains(key)) plans_.clear();
    Plan& plan = plans_.try_emplace(key, handle_, precision_, p).first->second;
    if (!plan.possible()) return false;
    plan.Run(handle_, p, workspace_.Reserve(plan.workspace_bytes()), stream_);
    return true;
  }

 private:
  const cudaStream_t stream_;
  const Precision precision_;
  cublasLtHandle_t handle_ = nullptr;
  CudaArray<std::byte> workspace_;
  std::map<PlanKey, Plan> plans_;
};

CudaProducts::CudaProducts(cudaStream_t stream, CudaCapture& capture, Precision precision)
    : library_(std::make_unique<Library>(stream, capture, precision)) {}
CudaProducts::~CudaProducts() = default;

bool CudaProducts::Run(const CudaProduct& product) {
  const bool empty = product.c.rows == 0 || product.c.cols == 0 || product.depth() == 0;
  return !empty && library_->Run(product);
}

}  // namespace hdps
