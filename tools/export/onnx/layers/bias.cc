// Adds one number to each column.
#include "tools/export/onnx/onnx_site.h"

namespace hdps {

OnnxValue BiasToOnnx(const OnnxSite& site) {
  return site.graph.Add("Add", {site.Input(), site.Tensor(0)});
}

}  // namespace hdps
