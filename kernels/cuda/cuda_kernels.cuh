// Launchers of the device's kernels, used by cuda_ops.cu. In all of them the shapes fix the order
// of sums.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <span>

#include "kernels/dense_ops.h"

namespace hdps {

class CudaStaging;  // cuda_staging.cuh

// ---- cuda_elementwise.cu.
void CudaAddBiasActivate(cudaStream_t stream, const float* bias, bool relu, Matrix c);
void CudaCopy(cudaStream_t stream, Write write, ConstMatrix x, Matrix y);
// Sets dy to zero where y is not positive.
void CudaMask(cudaStream_t stream, ConstMatrix y, Matrix dy);
// Sums of columns run over blocks of this many rows, then over the blocks.
inline constexpr size_t kColumnSumRows = 64;
// sums [cols] of partials [blocks, cols], in their order.
void CudaSumPartials(cudaStream_t stream, const float* partials, size_t blocks, size_t cols,
                     float* sums);
// partials [blocks of rows, cols] is scratch.
void CudaActivationBackward(cudaStream_t stream, ConstMatrix y, bool relu, Matrix dy,
                            float* partials, float* bias_gradient);

// ---- cuda_row_tasks.cu.
void CudaRunRows(cudaStream_t stream, const RowTask& task);

// ---- cuda_bags.cu.
void CudaLoadBags(CudaStaging& staging, std::span<const Bags> features, uint32_t num_rows,
                  std::unique_ptr<BagIndex>* index);
// `out` and `gradient` are in fp32 or in bf16.
template <typename To>
void CudaPool(cudaStream_t stream, BagIndex& index, const PoolSpec& spec, const float* rows,
              const To& out);
template <typename From>
void CudaPoolBackward(cudaStream_t stream, BagIndex& index, const PoolSpec& spec,
                      const From& gradient, Write write, float* row_gradients);

// ---- cuda_pair_dots.cu.
void CudaDot(cudaStream_t stream, const DotInputs& in, Matrix out);
void CudaDotBackward(cudaStream_t stream, const DotInputs& in, ConstMatrix g,
                     const DotGradients& out);

}  // namespace hdps
