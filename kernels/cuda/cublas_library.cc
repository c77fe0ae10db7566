// Forwards the calls of cuBLASLt to the library, which the first call loads: a program built with
// CUDA must also start on a machine without it.
#include "kernels/cuda/cublas_library.h"

#include <cublasLt.h>
#include <dlfcn.h>
#include <glog/logging.h>

namespace hdps {
namespace {

#define HDPS_TEXT_OF(number) #number
#define HDPS_CUBLAS_NAME(major) "libcublasLt.so." HDPS_TEXT_OF(major)
constexpr char kName[] = HDPS_CUBLAS_NAME(CUBLAS_VER_MAJOR);

struct Loaded {
  void* handle = nullptr;
  std::string problem;
};

const Loaded& Library() {
  static const Loaded loaded = [] {
    Loaded made;
    made.handle = dlopen(kName, RTLD_NOW | RTLD_LOCAL);
    if (made.handle == nullptr) made.problem = dlerror();
    return made;
  }();
  return loaded;
}

void* CallNamed(const char* name) {
  const Loaded& library = Library();
  CHECK(library.handle != nullptr) << "cuBLASLt cannot be loaded: " << library.problem;
  void* const call = dlsym(library.handle, name);
  CHECK(call != nullptr) << kName << " lacks " << name;
  return call;
}

}  // namespace

Status CublasStatus() {
  if (Library().handle != nullptr) return Status();
  return Status(Code::kNotFound,
                "cuBLASLt cannot be loaded: " + Library().problem +
                    "; install CUDA's cuBLAS, or add its folder to LD_LIBRARY_PATH");
}

}  // namespace hdps

// Defines one call of the library from its own declaration.
#define HDPS_HAND_ON(result, name, parameters, ...)                                     \
  result name parameters {                                                              \
    static const auto call = reinterpret_cast<decltype(&name)>(hdps::CallNamed(#name)); \
    return call(__VA_ARGS__);                                                           \
  }

HDPS_HAND_ON(const char*, cublasLtGetStatusString, (cublasStatus_t status), status)
HDPS_HAND_ON(cublasStatus_t, cublasLtCreate, (cublasLtHandle_t * handle), handle)
HDPS_HAND_ON(cublasStatus_t, cublasLtDestroy, (cublasLtHandle_t handle), handle)
HDPS_HAND_ON(cublasStatus_t, cublasLtMatmulDescCreate,
             (cublasLtMatmulDesc_t * desc, cublasComputeType_t compute, cudaDataType_t scale), desc,
             compute, scale)
HDPS_HAND_ON(cublasStatus_t, cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t desc), desc)
HDPS_HAND_ON(cublasStatus_t, cublasLtMatmulDescSetAttribute,
             (cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
              const void* value, size_t bytes),
             desc, attribute, value, bytes)
HDPS_HAND_ON(cublasStatus_t, cublasLtMatrixLayoutCreate,
             (cublasLtMatrixLayout_t * layout, cudaDataType type, uint64_t rows, uint64_t cols,
              int64_t stride),
             layout, type, rows, cols, stride)
HDPS_HAND_ON(cublasStatus_t, cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t layout), layout)
HDPS_HAND_ON(cublasStatus_t, cublasLtMatmulPreferenceCreate,
             (cublasLtMatmulPreference_t * preference), preference)
HDPS_HAND_ON(cublasStatus_t, cublasLtMatmulPreferenceDestroy,
             (cublasLtMatmulPreference_t preference), preference)
HDPS_HAND_ON(cublasStatus_t, cublasLtMatmulPreferenceSetAttribute,
             (cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
              const void* value, size_t bytes),
             preference, attribute, value, bytes)
HDPS_HAND_ON(cublasStatus_t, cublasLtMatmulAlgoGetHeuristic,
             (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
              cublasLtMatmulPreference_t preference, int wanted,
              cublasLtMatmulHeuristicResult_t* results, int* found),
             handle, desc, a, b, c, d, preference, wanted, results, found)
HDPS_HAND_ON(cublasStatus_t, cublasLtMatmul,
             (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha, const void* a,
              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm,
              void* workspace, size_t workspace_bytes, cudaStream_t stream),
             handle, desc, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d, d_layout,
             algorithm, workspace, workspace_bytes, stream)
