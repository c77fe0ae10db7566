// Specifies a matrix product: one sum in order of k for each element.
#pragma once

#include "kernels/products/gemm.h"

namespace hdps {

inline void PlainGemm(const GemmSpec& spec, ConstMatrix a, ConstMatrix b, Matrix c) {
  const size_t depth = spec.transpose_a ? a.rows : a.cols;
  for (size_t i = 0; i < c.rows; ++i) {
    for (size_t j = 0; j < c.cols; ++j) {
      float sum = 0.0f;
      for (size_t k = 0; k < depth; ++k) {
        const float x = spec.transpose_a ? a.Row(k)[i] : a.Row(i)[k];
        const float y = spec.transpose_b ? b.Row(j)[k] : b.Row(k)[j];
        sum += x * y;
      }
      float& out = c.Row(i)[j];
      out = spec.write == Write::kAdd ? out + sum : sum;
      if (spec.bias != nullptr) out += spec.bias[j];
      if (spec.relu && !(out > 0.0f)) out = 0.0f;
    }
  }
}

}  // namespace hdps
