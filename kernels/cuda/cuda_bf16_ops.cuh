// Dense layers in bf16 on the GPU.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <string>

#include "kernels/bf16_ops.h"
#include "kernels/cuda/cuda_memory.cuh"
#include "kernels/cuda/cuda_products.cuh"

namespace hdps {

// A bias that is added to a result in bf16 is rounded to bf16 too: cuBLASLt has no other.
class CudaBf16Ops : public Bf16Ops {
 public:
  // `ready` gives the stream, behind all that was uploaded. All of them outlive it.
  CudaBf16Ops(std::function<cudaStream_t()> ready, CudaProducts& products, CudaCapture& capture)
      : ready_(std::move(ready)), products_(products), bias_(capture), partials_(capture) {}

  std::string Arithmetic() const override { return "bf16 by cuBLASLt"; }
  void Narrow(ConstMatrix from, Bf16Matrix to) override;
  void Gemm(const GemmSpec& spec, Bf16Matrix a, Bf16Matrix b, const Bf16Tile& c) override;
  void BackwardOfDense(const Bf16DenseBackward& layer) override;

 private:
  const std::function<cudaStream_t()> ready_;
  CudaProducts& products_;
  CudaArray<uint16_t> bias_;  // Of the product at hand.
  CudaArray<float> partials_;
};

}  // namespace hdps
