// The cross network of DCN-v2: x0 * (x W + b) + x for each level.
#include "tools/export/onnx/onnx_site.h"

namespace hdps {

OnnxValue CrossToOnnx(const OnnxSite& site) {
  OnnxGraph& graph = site.graph;
  OnnxValue x = site.Input();
  for (size_t level = 0; level < site.units(); ++level) {
    const OnnxValue product = graph.Affine(x, site.Tensor(2 * level), site.Tensor(2 * level + 1));
    x = graph.Add("Add", {graph.Add("Mul", {site.Input(), product}), x});
  }
  return x;
}

}  // namespace hdps
