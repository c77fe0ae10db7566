// The outer product of the sum of the vectors with itself.
#include "tools/export/onnx/onnx_site.h"

namespace hdps {

OnnxValue OuterToOnnx(const OnnxSite& site) {
  OnnxGraph& graph = site.graph;
  const OnnxValue sum = graph.ReduceSum(site.Vectors(), 1);
  const OnnxValue products = graph.Add("Mul", {graph.Unsqueeze(sum, 2), graph.Unsqueeze(sum, 1)});
  return graph.Reshape(products, {0, site.width()});
}

}  // namespace hdps
