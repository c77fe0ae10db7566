// Mixes experts by the softmax of a gate.
#include "tools/export/onnx/onnx_site.h"

namespace hdps {

OnnxValue MixtureToOnnx(const OnnxSite& site) {
  OnnxGraph& graph = site.graph;
  const OnnxValue shares = graph.Add("Softmax", {site.Input(1)}, {{"axis", int64_t{1}}});
  const OnnxValue experts = graph.Reshape(site.Input(0), {0, site.InputWidth(1), site.width()});
  const OnnxValue mixed = graph.Add("MatMul", {graph.Unsqueeze(shares, 1), experts});
  return graph.Reshape(mixed, {0, site.width()});
}

}  // namespace hdps
