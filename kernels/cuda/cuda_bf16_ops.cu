// Products by cuBLASLt; what it does not compute beside them, by kernels of one pass.
#include "kernels/cuda/cuda_bf16_ops.cuh"

#include <glog/logging.h>

#include "kernels/cuda/cuda_bf16.cuh"
#include "kernels/cuda/cuda_check.cuh"
#include "kernels/cuda/cuda_kernels.cuh"

namespace hdps {
namespace {

// One thread kWidth neighbours: to = f(from, to) element by element.
template <size_t kWidth, typename From, typename To, typename Function>
__global__ void ForNeighbours(From from, To to, Function f) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x, pieces = to.cols / kWidth;
  if (i >= to.rows * pieces) return;
  const size_t row = i / pieces, col = i % pieces * kWidth;
  f(Load<kWidth>(from, row, col), to, row, col);
}

template <typename From, typename To, typename Function>
void LaunchForNeighbours(cudaStream_t stream, const From& from, const To& to, Function f) {
  if (to.rows * to.cols == 0) return;
  const bool wide = to.cols % kWide == 0 && IsWide(from) && IsWide(to);
  const unsigned blocks = BlocksFor(to.rows * (to.cols / (wide ? kWide : 1)));
  if (wide) {
    StartKernel(ForNeighbours<kWide, From, To, Function>, blocks, kThreadsABlock, stream, from, to,
                f);
  } else {
    StartKernel(ForNeighbours<1, From, To, Function>, blocks, kThreadsABlock, stream, from, to, f);
  }
}

struct NarrowEach {
  template <size_t kWidth>
  __device__ void operator()(const Neighbours<kWidth>& values, const Bf16Matrix& to, size_t row,
                             size_t col) const {
    Store(values, to, row, col);
  }
};

// `to` becomes zero where what a ReLU gave is not positive.
struct MaskEach {
  template <size_t kWidth>
  __device__ void operator()(const Neighbours<kWidth>& given, const Bf16Matrix& to, size_t row,
                             size_t col) const {
    Neighbours<kWidth> masked = Load<kWidth>(to, row, col);
    for (size_t w = 0; w < kWidth; ++w) masked.at[w] = given.at[w] > 0.0f ? masked.at[w] : 0.0f;
    Store(masked, to, row, col);
  }
};

struct AddBiasEach {
  const float* bias;  // Null: none.
  bool relu;
  template <size_t kWidth>
  __device__ void operator()(const Neighbours<kWidth>& product, const Bf16Matrix& to, size_t row,
                             size_t col) const {
    Neighbours<kWidth> sum = product;
    for (size_t w = 0; w < kWidth; ++w) {
      if (bias != nullptr) sum.at[w] += bias[col + w];
      if (relu) sum.at[w] = sum.at[w] > 0.0f ? sum.at[w] : 0.0f;
    }
    Store(sum, to, row, col);
  }
};

// Sums of one column of one block of rows.
__global__ void SumRows(Bf16Matrix dy, float* partials) {
  const size_t col = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (col >= dy.cols) return;
  const size_t first = blockIdx.y * kColumnSumRows;
  const size_t last = min(first + kColumnSumRows, dy.rows);
  float sum = 0.0f;
  for (size_t r = first; r < last; ++r) sum += FromBf16OnDevice(dy.data[r * dy.stride + col]);
  partials[blockIdx.y * dy.cols + col] = sum;
}

}  // namespace

void CudaBf16Ops::Narrow(ConstMatrix from, Bf16Matrix to) {
  LaunchForNeighbours(ready_(), from, to, NarrowEach());
}

void CudaBf16Ops::Gemm(const GemmSpec& spec, Bf16Matrix a, Bf16Matrix b, const Bf16Tile& c) {
  if (c.rows() * c.cols() == 0) return;
  const cudaStream_t stream = ready_();
  CudaProduct product{spec.transpose_a, spec.transpose_b, spec.write, a, b, CudaMatrix(c)};
  CHECK_GT(product.depth(), 0u);
  CudaProduct whole = product;
  whole.relu = spec.relu;
  whole.bias = spec.bias;
  if (product.c.bf16 && spec.bias != nullptr) {
    uint16_t* const bias = bias_.Reserve(c.cols());
    LaunchForNeighbours(stream, ConstMatrix(spec.bias, 1, c.cols(), c.cols()),
                        Bf16Matrix{bias, 1, c.cols(), c.cols()}, NarrowEach());
    whole.bias = bias;
  }
  if (products_.Run(whole)) return;
  products_.Run(product);
  if (product.c.bf16) {
    LaunchForNeighbours(stream, c.bf16, c.bf16, AddBiasEach{spec.bias, spec.relu});
  } else {
    CudaAddBiasActivate(stream, spec.bias, spec.relu, c.fp32);
  }
}

void CudaBf16Ops::BackwardOfDense(const Bf16DenseBackward& layer) {
  CHECK(!layer.relu_below || layer.dx.fp32.data == nullptr);
  const cudaStream_t stream = ready_();
  CudaProduct weights{true, false, Write::kOver, layer.x, layer.dy, layer.weight_gradient};
  const bool wants_weights = layer.weight_gradient.data != nullptr;
  bool with_sums = false;
  if (wants_weights && layer.bias_gradient != nullptr) {
    weights.sums_of_b = layer.bias_gradient;
    with_sums = products_.Run(weights);
    weights.sums_of_b = nullptr;
  }
  if (!with_sums && wants_weights && layer.dy.rows > 0) products_.Run(weights);
  if (!with_sums && wants_weights && layer.dy.rows == 0) {
    const Matrix& to = layer.weight_gradient;
    HDPS_CUDA_CHECK(cudaMemset2DAsync(to.data, to.stride * sizeof(float), 0,
                                      to.cols * sizeof(float), to.rows, stream));
  }
  if (!with_sums && layer.bias_gradient != nullptr) {
    const size_t blocks = (layer.dy.rows + kColumnSumRows - 1) / kColumnSumRows;
    float* const partials = partials_.Reserve(blocks * layer.dy.cols);
    if (blocks > 0) {
      const dim3 grid(BlocksFor(layer.dy.cols), static_cast<unsigned>(blocks));
      StartKernel(SumRows, grid, kThreadsABlock, stream, layer.dy, partials);
    }
    CudaSumPartials(stream, partials, blocks, layer.dy.cols, layer.bias_gradient);
  }
  if (layer.dx.rows() * layer.dx.cols() == 0) return;
  products_.Run({false, true, layer.write_dx, layer.dy, layer.weights, CudaMatrix(layer.dx)});
  if (layer.relu_below) LaunchForNeighbours(stream, layer.x, layer.dx.bf16, MaskEach());
}

}  // namespace hdps
