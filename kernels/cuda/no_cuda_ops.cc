// Stands in for cuda_ops.cu in a build without nvcc.
#include "kernels/dense_ops.h"

namespace hdps {

Result<std::unique_ptr<DenseOps>> NewCudaOps(const CudaOptions&) {
  return Status(Code::kNotFound, "this build has no CUDA (nvcc was not found or HDPS_CUDA is OFF)");
}

}  // namespace hdps
