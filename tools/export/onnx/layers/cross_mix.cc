// Cross layers of low rank, as a mixture of experts: x0 * (experts of x, gated, W_up + b) + x.
#include "tools/export/onnx/onnx_site.h"

namespace hdps {

OnnxValue CrossMixToOnnx(const OnnxSite& site) {
  OnnxGraph& graph = site.graph;
  const auto experts = static_cast<int64_t>(site.Number("experts"));
  const auto rank = static_cast<int64_t>(site.Number("rank"));
  OnnxValue x = site.Input();
  for (size_t level = 0; level < site.units(); ++level) {
    const size_t tensor = 5 * level;
    const OnnxValue down = graph.Add("Tanh", {graph.Add("MatMul", {x, site.Tensor(tensor)})});
    const OnnxValue core = EachByItsMatrix(graph, graph.Reshape(down, {0, experts, rank}),
                                           site.Tensor(tensor + 1, {experts, rank, rank}));
    const OnnxValue active = graph.Add("Tanh", {core});
    const OnnxValue gates = graph.Add(
        "Softmax", {graph.Add("MatMul", {x, site.Tensor(tensor + 4)})}, {{"axis", int64_t{1}}});
    const OnnxValue gated = graph.Add("Mul", {active, graph.Unsqueeze(gates, 2)});
    const OnnxValue product = graph.Add("Gemm", {graph.Reshape(gated, {0, experts * rank}),
                                                 site.Tensor(tensor + 2), site.Tensor(tensor + 3)});
    x = graph.Add("Add", {graph.Add("Mul", {site.Input(), product}), x});
  }
  return x;
}

}  // namespace hdps
