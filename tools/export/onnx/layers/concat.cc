// Puts other layers side by side.
#include "tools/export/onnx/onnx_site.h"

namespace hdps {

OnnxValue ConcatToOnnx(const OnnxSite& site) {
  std::vector<OnnxValue> inputs;
  for (size_t i = 0; i < site.num_inputs(); ++i) inputs.push_back(site.Input(i));
  return site.graph.Concat(inputs, 1);
}

}  // namespace hdps
