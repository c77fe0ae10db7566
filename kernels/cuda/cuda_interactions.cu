// Factorization machine, cross network and pair dots on the device; formulas in interactions.h.
#include "kernels/cuda/cuda_check.cuh"
#include "kernels/cuda/cuda_kernels.cuh"

namespace hdps {
namespace {

__device__ void Put(Write write, float value, float* out) {
  *out = write == Write::kAdd ? *out + value : value;
}

// One thread an example: the sums over d and f run in the order of the plain loop.
__global__ void FmKernel(ConstMatrix x, size_t dim, Matrix out) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= x.rows) return;
  const float* v = x.data + i * x.stride;
  float total = 0.0f;
  for (size_t d = 0; d < dim; ++d) {
    float sum = 0.0f, squares = 0.0f;
    for (size_t at = d; at < x.cols; at += dim) {
      sum += v[at];
      squares += v[at] * v[at];
    }
    total += sum * sum - squares;
  }
  out.data[i * out.stride] = 0.5f * total;
}

// One thread an example and d.
__global__ void FmBackwardKernel(ConstMatrix x, size_t dim, ConstMatrix g, Write write, Matrix dx) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= x.rows * dim) return;
  const size_t row = i / dim, d = i % dim;
  const float* v = x.data + row * x.stride;
  const float factor = g.data[row * g.stride];
  float sum = 0.0f;
  for (size_t at = d; at < x.cols; at += dim) sum += v[at];
  for (size_t at = d; at < x.cols; at += dim) {
    Put(write, factor * (sum - v[at]), dx.data + row * dx.stride + at);
  }
}

// One thread an element.
__global__ void CrossKernel(ConstMatrix x0, ConstMatrix u, ConstMatrix x, Matrix out) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= out.rows * out.cols) return;
  const size_t r = i / out.cols, j = i % out.cols;
  out.data[r * out.stride + j] =
      x0.data[r * x0.stride + j] * u.data[r * u.stride + j] + x.data[r * x.stride + j];
}

__global__ void CrossBackwardKernel(ConstMatrix x0, ConstMatrix u, ConstMatrix g, Write write_dx0,
                                    Matrix du, Matrix dx0) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= g.rows * g.cols) return;
  const size_t r = i / g.cols, j = i % g.cols;
  const float gradient = g.data[r * g.stride + j];
  du.data[r * du.stride + j] = gradient * x0.data[r * x0.stride + j];
  Put(write_dx0, gradient * u.data[r * u.stride + j], dx0.data + r * dx0.stride + j);
}

// Vector a of an example, 0 being the dense one where there is one.
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
  Put(a < dense ? out.write_dense : out.write_embeddings, sum,
      to.data + row * to.stride + (a < dense ? 0 : a - dense) * in.dim + d);
}

}  // namespace

void CudaFm(cudaStream_t stream, ConstMatrix x, size_t dim, Matrix out) {
  if (x.rows == 0) return;
  FmKernel<<<BlocksFor(x.rows), kThreadsABlock, 0, stream>>>(x, dim, out);
  HDPS_CUDA_CHECK(cudaGetLastError());
}

void CudaFmBackward(cudaStream_t stream, ConstMatrix x, size_t dim, ConstMatrix g, Write write,
                    Matrix dx) {
  if (x.rows == 0) return;
  FmBackwardKernel<<<BlocksFor(x.rows * dim), kThreadsABlock, 0, stream>>>(x, dim, g, write, dx);
  HDPS_CUDA_CHECK(cudaGetLastError());
}

void CudaCross(cudaStream_t stream, ConstMatrix x0, ConstMatrix u, ConstMatrix x, Matrix out) {
  if (out.rows == 0) return;
  CrossKernel<<<BlocksFor(out.rows * out.cols), kThreadsABlock, 0, stream>>>(x0, u, x, out);
  HDPS_CUDA_CHECK(cudaGetLastError());
}

void CudaCrossBackward(cudaStream_t stream, ConstMatrix x0, ConstMatrix u, ConstMatrix g,
                       Write write_dx0, Matrix du, Matrix dx0) {
  if (g.rows == 0) return;
  CrossBackwardKernel<<<BlocksFor(g.rows * g.cols), kThreadsABlock, 0, stream>>>(
      x0, u, g, write_dx0, du, dx0);
  HDPS_CUDA_CHECK(cudaGetLastError());
}

void CudaDot(cudaStream_t stream, const DotInputs& in, Matrix out) {
  if (out.rows == 0) return;
  DotKernel<<<BlocksFor(out.rows * out.cols), kThreadsABlock, 0, stream>>>(in, out);
  HDPS_CUDA_CHECK(cudaGetLastError());
}

void CudaDotBackward(cudaStream_t stream, const DotInputs& in, ConstMatrix g,
                     const DotGradients& out) {
  if (g.rows == 0) return;
  const size_t vectors = in.num_vectors();
  DotBackwardKernel<<<BlocksFor(g.rows * vectors * in.dim), kThreadsABlock, 0, stream>>>(
      in, vectors, g, out);
  HDPS_CUDA_CHECK(cudaGetLastError());
}

}  // namespace hdps
