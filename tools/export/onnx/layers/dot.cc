// Dot products of all pairs of vectors: of vector a with those before it, a by a.
#include "tools/export/onnx/onnx_site.h"

namespace hdps {

OnnxValue DotToOnnx(const OnnxSite& site) {
  OnnxGraph& graph = site.graph;
  // The dense vector, if there is one, stands before those of the embedding.
  std::vector<OnnxValue> parts;
  if (site.num_inputs() == 2) parts.push_back(graph.Unsqueeze(site.Input(1), 1));
  parts.push_back(site.Vectors());
  const OnnxValue vectors = graph.Concat(parts, 1);
  const int64_t count = site.NumVectors() + static_cast<int64_t>(parts.size()) - 1;
  const OnnxValue products = graph.Add("MatMul", {vectors, graph.Transpose(vectors, {0, 2, 1})});
  std::vector<int64_t> below;
  for (int64_t a = 1; a < count; ++a) {
    for (int64_t b = 0; b < a; ++b) below.push_back(a * count + b);
  }
  return graph.Gather(graph.Reshape(products, {0, count * count}), 1, below);
}

}  // namespace hdps
