// The compressed interaction network of xDeepFM.
#include "tools/export/onnx/onnx_site.h"

namespace hdps {

OnnxValue CinToOnnx(const OnnxSite& site) {
  OnnxGraph& graph = site.graph;
  const int64_t maps = site.units(), vectors = site.NumVectors();
  const auto levels = static_cast<size_t>(site.Number("levels"));
  const bool halved = site.Word("split") == "half";
  // All maps are [n, dim, maps].
  const OnnxValue first = graph.Transpose(site.Vectors(), {0, 2, 1});
  OnnxValue before = first;
  std::vector<OnnxValue> outputs;
  for (size_t level = 0; level < levels; ++level) {
    const int64_t products = site.TensorFloats(level).shape[0];
    if (level > 0) before = graph.Slice(before, 2, 0, products / vectors);
    const OnnxValue z = graph.Add("Mul", {graph.Unsqueeze(before, 3), graph.Unsqueeze(first, 2)});
    before = graph.Add("MatMul", {graph.Reshape(z, {0, 0, products}), site.Tensor(level)});
    const bool last = level + 1 == levels;
    const OnnxValue out = halved && !last ? graph.Slice(before, 2, maps / 2, maps) : before;
    outputs.push_back(graph.ReduceSum(out, 1));
  }
  return graph.Concat(outputs, 1);
}

}  // namespace hdps
