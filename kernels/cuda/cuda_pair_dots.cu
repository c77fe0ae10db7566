// Pair dots on the device; formulas in pair_dots.h.
#include "kernels/cuda/cuda_check.cuh"
#include "kernels/cuda/cuda_kernels.cuh"

namespace hdps {
namespace {

// Returns vector a of an example; 0 is the dense one, if there is one.
__device__ const float* VectorOf(const DotInputs& in, size_t row, size_t a) {
  const size_t dense = in.dense.data == nullptr ? 0 : 1;
  return a < dense ? in.dense.data + row * in.dense.stride
                   : in.embeddings.data + row * in.embeddings.stride + (a - dense) * in.dim;
}

// One thread an example and pair; `pair` counts (1, 0), (2, 0), (2, 1), ...
__global__ void DotKernel(DotInputs in, Matrix out) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= out.rows * out.cols) return;
  const size_t row = i / out.cols, pair = i % out.cols;
  size_t a = 1;
  while ((a + 1) * a / 2 <= pair) ++a;
  const float* x = VectorOf(in, row, a);
  const float* y = VectorOf(in, row, pair - a * (a - 1) / 2);
  float dot = 0.0f;
  for (size_t d = 0; d < in.dim; ++d) dot += x[d] * y[d];
  out.data[row * out.stride + pair] = dot;
}

// One thread an example, vector and d.
__global__ void DotBackwardKernel(DotInputs in, size_t vectors, ConstMatrix g, DotGradients out) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= g.rows * vectors * in.dim) return;
  const size_t row = i / (vectors * in.dim), a = i / in.dim % vectors, d = i % in.dim;
  const size_t dense = in.dense.data == nullptr ? 0 : 1;
  const Matrix& to = a < dense ? out.dense : out.embeddings;
  if (to.data == nullptr) return;
  const float* pairs = g.data + row * g.stride;
  float sum = 0.0f;
  for (size_t b = 0; b < vectors; ++b) {
    if (b == a) continue;
    const size_t pair = a > b ? a * (a - 1) / 2 + b : b * (b - 1) / 2 + a;
    sum += pairs[pair] * VectorOf(in, row, b)[d];
  }
  WriteTo(ElementOf(to, row, (a < dense ? 0 : a - dense) * in.dim + d),
          a < dense ? out.write_dense : out.write_embeddings, sum);
}

}  // namespace

void CudaDot(cudaStream_t stream, const DotInputs& in, Matrix out) {
  if (out.rows == 0) return;
  StartKernel(DotKernel, BlocksFor(out.rows * out.cols), kThreadsABlock, stream, in, out);
}

void CudaDotBackward(cudaStream_t stream, const DotInputs& in, ConstMatrix g,
                     const DotGradients& out) {
  if (g.rows == 0) return;
  const size_t vectors = in.num_vectors();
  StartKernel(DotBackwardKernel, BlocksFor(g.rows * vectors * in.dim), kThreadsABlock, stream, in,
              vectors, g, out);
}

}  // namespace hdps
