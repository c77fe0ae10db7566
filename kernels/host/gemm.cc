// The plain matrix product and what follows a product: bias and activation.
#include "kernels/host/gemm.h"

namespace hdps {

void AddBiasActivate(const float* bias, bool relu, Matrix c) {
  if (bias == nullptr && !relu) return;
  for (size_t r = 0; r < c.rows; ++r) {
    float* __restrict row = c.Row(r);
    if (bias != nullptr) {
      for (size_t j = 0; j < c.cols; ++j) row[j] += bias[j];
    }
    if (relu) {
      for (size_t j = 0; j < c.cols; ++j) row[j] = row[j] > 0.0f ? row[j] : 0.0f;
    }
  }
}

void PlainGemm(const GemmSpec& spec, ConstMatrix a, ConstMatrix b, Matrix c) {
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
    }
  }
  AddBiasActivate(spec.bias, spec.relu, c);
}

}  // namespace hdps
