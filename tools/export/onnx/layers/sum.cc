// Adds other layers of the same width.
#include "tools/export/onnx/onnx_site.h"

namespace hdps {

OnnxValue SumToOnnx(const OnnxSite& site) {
  std::vector<OnnxValue> inputs;
  for (size_t i = 0; i < site.num_inputs(); ++i) inputs.push_back(site.Input(i));
  return site.graph.Sum(inputs);
}

}  // namespace hdps
