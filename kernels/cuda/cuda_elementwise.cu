// Activation, copies and column sums on the device.
#include "kernels/cuda/cuda_check.cuh"
#include "kernels/cuda/cuda_kernels.cuh"
#include "kernels/cuda/cuda_neighbours.cuh"

namespace hdps {
namespace {

// Calls f(row, column), one thread an element of y.
template <typename Function>
__global__ void ForElements(size_t rows, size_t cols, Function f) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < rows * cols) f(i / cols, i % cols);
}

template <typename Function>
void LaunchForElements(cudaStream_t stream, size_t rows, size_t cols, Function f) {
  if (rows * cols == 0) return;
  StartKernel(ForElements<Function>, BlocksFor(rows * cols), kThreadsABlock, stream, rows, cols, f);
}

// One thread kWidth neighbours of dy.
template <size_t kWidth>
__global__ void MaskKernel(ConstMatrix y, Matrix dy) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x, pieces = dy.cols / kWidth;
  if (i >= dy.rows * pieces) return;
  const size_t row = i / pieces, col = i % pieces * kWidth;
  const auto from = Neighbours<kWidth>::From(y.data + row * y.stride + col);
  float* const to = dy.data + row * dy.stride + col;
  auto masked = Neighbours<kWidth>::From(to);
  for (size_t w = 0; w < kWidth; ++w) masked.at[w] = from.at[w] > 0.0f ? masked.at[w] : 0.0f;
  masked.To(to);
}

// Masks and sums one column of one block of rows.
__global__ void MaskAndSum(ConstMatrix y, bool relu, Matrix dy, float* partials) {
  const size_t col = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (col >= dy.cols) return;
  const size_t first = blockIdx.y * kColumnSumRows;
  const size_t last = min(first + kColumnSumRows, dy.rows);
  float sum = 0.0f;
  for (size_t r = first; r < last; ++r) {
    float d = dy.data[r * dy.stride + col];
    if (relu) {
      d = y.data[r * y.stride + col] > 0.0f ? d : 0.0f;
      dy.data[r * dy.stride + col] = d;
    }
    sum += d;
  }
  partials[blockIdx.y * dy.cols + col] = sum;
}

__global__ void SumPartials(const float* partials, size_t blocks, size_t cols, float* sums) {
  const size_t col = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (col >= cols) return;
  float sum = 0.0f;
  for (size_t b = 0; b < blocks; ++b) sum += partials[b * cols + col];
  sums[col] = sum;
}

}  // namespace

void CudaAddBiasActivate(cudaStream_t stream, const float* bias, bool relu, Matrix c) {
  if (bias == nullptr && !relu) return;
  LaunchForElements(stream, c.rows, c.cols, [=] __device__(size_t r, size_t j) {
    float value = c.data[r * c.stride + j];
    if (bias != nullptr) value += bias[j];
    if (relu) value = value > 0.0f ? value : 0.0f;
    c.data[r * c.stride + j] = value;
  });
}

void CudaCopy(cudaStream_t stream, Write write, ConstMatrix x, Matrix y) {
  LaunchForElements(stream, y.rows, y.cols, [=] __device__(size_t r, size_t j) {
    float& to = y.data[r * y.stride + j];
    const float from = x.data[r * x.stride + j];
    to = write == Write::kAdd ? to + from : from;
  });
}

void CudaMask(cudaStream_t stream, ConstMatrix y, Matrix dy) {
  if (dy.rows * dy.cols == 0) return;
  const bool wide = dy.cols % kWide == 0 && IsWide(y.data, y.stride) && IsWide(dy.data, dy.stride);
  const size_t items = dy.rows * (dy.cols / (wide ? kWide : 1));
  StartKernel(wide ? MaskKernel<kWide> : MaskKernel<1>, BlocksFor(items), kThreadsABlock, stream, y,
              dy);
}

void CudaActivationBackward(cudaStream_t stream, ConstMatrix y, bool relu, Matrix dy,
                            float* partials, float* bias_gradient) {
  if (dy.cols == 0) return;
  const size_t blocks = (dy.rows + kColumnSumRows - 1) / kColumnSumRows;
  if (blocks > 0) {
    const dim3 grid(BlocksFor(dy.cols), static_cast<unsigned>(blocks));
    StartKernel(MaskAndSum, grid, kThreadsABlock, stream, y, relu, dy, partials);
  }
  CudaSumPartials(stream, partials, blocks, dy.cols, bias_gradient);
}

void CudaSumPartials(cudaStream_t stream, const float* partials, size_t blocks, size_t cols,
                     float* sums) {
  StartKernel(SumPartials, BlocksFor(cols), kThreadsABlock, stream, partials, blocks, cols, sums);
}

}  // namespace hdps
