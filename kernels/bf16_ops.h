// Dense layers whose products multiply bf16 numbers: the interface that layers use if the job asks
// for bf16.
//
// Inputs of products are rounded to bf16 (to nearest, ties to even). Sums, bias and ReLU are in
// fp32, and so are weights, their gradients and the optimizer. Only between two such layers are
// activations and their gradients stored in bf16. (Mixed precision training: Micikevicius et al.
// 2018; bf16 instead of fp16 needs no loss scaling: Kalamkar et al. 2019.)
#pragma once

#include <string>

#include "kernels/matrix.h"
#include "kernels/products/bf16_gemm.h"
#include "kernels/products/gemm.h"

namespace hdps {

// The backward of a dense layer, as in DenseBackward (dense_ops.h), with operands in bf16.
struct Bf16DenseBackward {
  Bf16Matrix x;            // [n, inputs]
  Bf16Matrix weights;      // [inputs, units]
  Bf16Matrix dy;           // [n, units]
  Matrix weight_gradient;  // [inputs, units] = x^T dy; not computed without data.
  // [units] = sum of dy over the rows, in their order; not computed if null.
  float* bias_gradient = nullptr;
  // [n, inputs] (+)= dy W^T, in one of the two formats; not computed without data. In bf16 it
  // replaces what is there, and is zero where `relu_below` is set and x is not positive.
  Bf16Tile dx;
  Write write_dx = Write::kOver;
  bool relu_below = false;
};

// Computes such layers on one device. Calls come from one thread. Invariant: as in DenseOps.
class Bf16Ops {
 public:
  virtual ~Bf16Ops() = default;
  // Returns what the bits depend on besides the shapes: "bf16 by AMX".
  virtual std::string Arithmetic() const = 0;
  virtual void SetRowsAlike(bool) {}  // As DenseOps::SetRowsAlike().
  virtual void Narrow(ConstMatrix from, Bf16Matrix to) = 0;
  virtual void Gemm(const GemmSpec& spec, Bf16Matrix a, Bf16Matrix b, const Bf16Tile& c) = 0;
  virtual void BackwardOfDense(const Bf16DenseBackward& layer) = 0;
};

}  // namespace hdps
