// Losses on the device: one thread an example, in double as on the host; formulas in loss.h.
#include "kernels/cuda/cuda_check.cuh"
#include "kernels/cuda/cuda_kernels.cuh"

namespace hdps {
namespace {

__global__ void LoglossKernel(ConstMatrix logits, const float* labels, Matrix gradient,
                              float* probabilities, double* losses) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= logits.rows) return;
  const double z = logits.data[i * logits.stride], y = labels[i];
  const double e = exp(-fabs(z));
  const double p = z >= 0 ? 1.0 / (1.0 + e) : e / (1.0 + e);
  losses[i] = fmax(z, 0.0) + log1p(e) - y * z;
  if (probabilities != nullptr) probabilities[i] = static_cast<float>(p);
  if (gradient.data != nullptr) gradient.data[i * gradient.stride] = static_cast<float>(p - y);
}

__global__ void SoftmaxKernel(ConstMatrix logits, const float* labels, Matrix gradient,
                              float* probabilities, double* losses) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= logits.rows) return;
  const float* z = logits.data + i * logits.stride;
  const size_t classes = logits.cols, label = static_cast<size_t>(labels[i]);
  double top = z[0];
  for (size_t c = 1; c < classes; ++c) top = fmax(top, static_cast<double>(z[c]));
  double total = 0;
  for (size_t c = 0; c < classes; ++c) total += exp(z[c] - top);
  losses[i] = log(total) + top - z[label];
  for (size_t c = 0; c < classes; ++c) {
    const double p = exp(z[c] - top) / total;
    if (probabilities != nullptr) probabilities[i * classes + c] = static_cast<float>(p);
    if (gradient.data != nullptr) {
      gradient.data[i * gradient.stride + c] = static_cast<float>(p - (c == label ? 1.0 : 0.0));
    }
  }
}

}  // namespace

void CudaLoss(cudaStream_t stream, LossKind kind, ConstMatrix logits, const float* labels,
              Matrix gradient, float* probabilities, double* losses) {
  if (logits.rows == 0) return;
  const unsigned blocks = BlocksFor(logits.rows);
  if (kind == LossKind::kLogloss) {
    LoglossKernel<<<blocks, kThreadsABlock, 0, stream>>>(logits, labels, gradient, probabilities,
                                                         losses);
  } else {
    SoftmaxKernel<<<blocks, kThreadsABlock, 0, stream>>>(logits, labels, gradient, probabilities,
                                                         losses);
  }
  HDPS_CUDA_CHECK(cudaGetLastError());
}

}  // namespace hdps
