// Losses of examples: logloss of one logit, softmax cross-entropy of several.
#pragma once

#include "kernels/matrix.h"

namespace hdps {

// Outputs that a loss may give; null pointers are left out.
struct LossOutputs {
  Matrix gradient;       // d loss / d logits, [n, logits.cols], or data == null.
  float* probabilities;  // [n] of class 1, or [n, classes].
  double* losses;        // [n], one an example.
};

// labels[n] in [0, 1]; logits [n, 1]. loss = log(1 + exp(z)) - y z, gradient = sigmoid(z) - y.
void Logloss(ConstMatrix logits, const float* labels, const LossOutputs& out);

// labels[n] are class numbers < logits.cols.
// loss = log(sum exp(z_c)) - z_y, gradient = softmax(z) - onehot(y).
void SoftmaxLoss(ConstMatrix logits, const float* labels, const LossOutputs& out);

}  // namespace hdps
