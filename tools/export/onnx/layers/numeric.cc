// Numbers of an example are an input of the model.
#include "tools/export/onnx/onnx_site.h"

namespace hdps {

OnnxValue NumericToOnnx(const OnnxSite& site) {
  return site.graph.Input("numeric", OnnxType::kFloat, {"n", site.width()});
}

}  // namespace hdps
