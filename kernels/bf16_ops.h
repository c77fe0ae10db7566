// Dense layers whose products multiply numbers in bf16: what layers are written against where the
// job asks for it.
//
// Inputs of products are rounded to bf16 (to the nearest, of two as near to the even one); sums,
// bias and ReLU are in fp32, and so are weights, their gradients and the optimizer. Between two
// such layers activations and their gradients stand in bf16 and nowhere else. (Mixed precision
// training: Micikevicius et al. 2018; bf16 in the place of fp16 needs no scaling of the loss:
// Kalamkar et al. 2019.)
#pragma once

#include <string>

#include "kernels/matrix.h"
#include "kernels/products/bf16_gemm.h"
#include "kernels/products/gemm.h"

namespace hdps {

// As DenseBackward (dense_ops.h) has it, with what is multiplied in bf16.
struct Bf16DenseBackward {
  Bf16Matrix x;                    // [n, inputs]
  Bf16Matrix weights;              // [inputs, units]
  Bf16Matrix dy;                   // [n, units]
  Matrix weight_gradient;          // [inputs, units] = x^T dy; without data: not.
  float* bias_gradient = nullptr;  // [units] = sum of dy over the rows, in their order; null: not.
  // [n, inputs] (+)= dy W^T, in one of the two formats; without data: not. In bf16 it is over, and
  // where `relu_below` zero where x is not positive.
  Bf16Tile dx;
  Write write_dx = Write::kOver;
  bool relu_below = false;
};

// Calls come from one thread. Invariant: as that of DenseOps.
class Bf16Ops {
 public:
  virtual ~Bf16Ops() = default;
  // What the bits depend on beside the shapes: "bf16 by AMX".
  virtual std::string Arithmetic() const = 0;
  virtual void Narrow(ConstMatrix from, Bf16Matrix to) = 0;
  virtual void Gemm(const GemmSpec& spec, Bf16Matrix a, Bf16Matrix b, const Bf16Tile& c) = 0;
  virtual void BackwardOfDense(const Bf16DenseBackward& layer) = 0;
};

}  // namespace hdps
