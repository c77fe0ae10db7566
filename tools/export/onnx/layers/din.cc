// The attention of DIN: the vectors of a sequence, each times its score, added up.
#include "tools/export/onnx/onnx_site.h"

namespace hdps {

OnnxValue DinToOnnx(const OnnxSite& site) {
  OnnxGraph& graph = site.graph;
  const int64_t length = site.NumVectors(0);
  const OnnxValue keys = site.Vectors(0);
  const OnnxValue target = graph.Unsqueeze(site.Input(1), 1);
  const OnnxValue targets = graph.Add("Expand", {target, graph.Add("Shape", {keys})});
  const OnnxValue features = graph.Concat(
      {keys, targets, graph.Add("Sub", {keys, targets}), graph.Add("Mul", {keys, targets})}, 2);
  const OnnxValue product = graph.Add("MatMul", {features, site.Tensor(0)});
  const OnnxValue hidden =
      Activated(graph, site.activation(), graph.Add("Add", {product, site.Tensor(1)}));
  OnnxValue scores = graph.Add("MatMul", {hidden, site.Tensor(2)});
  const OnnxValue mask = site.Mask(length);
  OnnxValue weights;
  if (site.Word("scores") == "softmax") {
    weights = site.MaskedSoftmax(mask, graph.Reshape(scores, {0, length}));
  } else {
    scores = graph.Add("Add", {scores, site.Tensor(3)});
    weights = site.Masked(mask, graph.Reshape(scores, {0, length}));
  }
  const OnnxValue sum = graph.Add("MatMul", {graph.Unsqueeze(weights, 1), keys});
  return graph.Reshape(sum, {0, site.width()});
}

}  // namespace hdps
