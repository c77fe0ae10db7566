// Losses in double inside, float outside; no exponent of a positive number, so nothing overflows.
#include "kernels/host/loss.h"

#include <algorithm>
#include <cmath>

namespace hdps {

void Logloss(ConstMatrix logits, const float* labels, const LossOutputs& out) {
  for (size_t i = 0; i < logits.rows; ++i) {
    const double z = logits.Row(i)[0], y = labels[i];
    const double e = std::exp(-std::fabs(z));
    const double p = z >= 0 ? 1.0 / (1.0 + e) : e / (1.0 + e);
    if (out.losses != nullptr) out.losses[i] = std::max(z, 0.0) + std::log1p(e) - y * z;
    if (out.probabilities != nullptr) out.probabilities[i] = static_cast<float>(p);
    if (out.gradient.data != nullptr) out.gradient.Row(i)[0] = static_cast<float>(p - y);
  }
}

void SoftmaxLoss(ConstMatrix logits, const float* labels, const LossOutputs& out) {
  const size_t classes = logits.cols;
  for (size_t i = 0; i < logits.rows; ++i) {
    const float* z = logits.Row(i);
    const size_t label = static_cast<size_t>(labels[i]);
    const double top = *std::max_element(z, z + classes);
    double total = 0;
    for (size_t c = 0; c < classes; ++c) total += std::exp(z[c] - top);
    if (out.losses != nullptr) out.losses[i] = std::log(total) + top - z[label];
    for (size_t c = 0; c < classes; ++c) {
      const double p = std::exp(z[c] - top) / total;
      if (out.probabilities != nullptr) out.probabilities[i * classes + c] = static_cast<float>(p);
      if (out.gradient.data != nullptr) {
        out.gradient.Row(i)[c] = static_cast<float>(p - (c == label ? 1.0 : 0.0));
      }
    }
  }
}

}  // namespace hdps
