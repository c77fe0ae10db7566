// Batch normalization by the running averages: (x - mean) * factor + bias.
#include <cmath>

#include "tools/export/onnx/onnx_site.h"

namespace hdps {

OnnxValue BatchNormToOnnx(const OnnxSite& site) {
  const OnnxTensor &gain = site.TensorFloats(0), &variance = site.TensorFloats(3);
  const double epsilon = static_cast<float>(site.Number("epsilon"));
  std::vector<float> factor(gain.floats.size());
  for (size_t i = 0; i < factor.size(); ++i) {
    // As kernels/tasks/column_norm.h rounds it.
    const double scale = 1.0 / std::sqrt(static_cast<double>(variance.floats[i]) + epsilon);
    factor[i] = gain.floats[i] * static_cast<float>(scale);
  }
  const OnnxValue apart = site.graph.Add("Sub", {site.Input(), site.Tensor(2)});
  const OnnxValue factors =
      site.graph.Floats("layers/" + site.name() + ".factor", gain.shape, factor);
  return site.graph.Add("Add", {site.graph.Add("Mul", {apart, factors}), site.Tensor(1)});
}

}  // namespace hdps
