// Multi-head self-attention over the vectors of an example: relu(attended + x W).
#include "tools/export/onnx/onnx_attention.h"
#include "tools/export/onnx/onnx_site.h"

namespace hdps {

OnnxValue AttentionToOnnx(const OnnxSite& site) {
  OnnxGraph& graph = site.graph;
  const OnnxValue vectors = site.Vectors();
  OnnxValue projected[4];  // Queries, keys, values and residuals, [n, F, units].
  for (size_t i = 0; i < 4; ++i) projected[i] = graph.Add("MatMul", {vectors, site.Tensor(i)});
  OnnxHeads heads;
  heads.count = static_cast<int64_t>(site.Number("heads"));
  heads.vectors = site.NumVectors();
  heads.head_dim = site.units() / heads.count;
  const OnnxValue attended =
      Attended(site, heads, projected[0], projected[1], projected[2], /*mask=*/"");
  const OnnxValue sum = graph.Add("Add", {attended, projected[3]});
  return graph.Reshape(graph.Add("Relu", {sum}), {0, site.width()});
}

}  // namespace hdps
