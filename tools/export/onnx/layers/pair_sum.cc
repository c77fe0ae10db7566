// Bi-interaction pooling: the products of all pairs of vectors, added.
#include "tools/export/onnx/onnx_site.h"

namespace hdps {

OnnxValue PairSumToOnnx(const OnnxSite& site) {
  OnnxGraph& graph = site.graph;
  const OnnxValue vectors = site.Vectors();
  const OnnxValue sum = graph.ReduceSum(vectors, 1);
  const OnnxValue squares = graph.ReduceSum(graph.Add("Mul", {vectors, vectors}), 1);
  const OnnxValue products = graph.Add("Sub", {graph.Add("Mul", {sum, sum}), squares});
  return graph.Add("Mul", {products, graph.Number(0.5f)});
}

}  // namespace hdps
