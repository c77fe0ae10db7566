// A gated recurrent unit over a sequence, also with attention to a target, step by step.
#include "tools/export/onnx/onnx_site.h"

namespace hdps {
namespace {

// Weighs the steps by softmax over the sequence of <vector W, target>; [n, steps, 1].
OnnxValue StepWeights(const OnnxSite& site, const OnnxValue& vectors) {
  OnnxGraph& graph = site.graph;
  const int64_t steps = site.NumVectors();
  const OnnxValue question =
      graph.Add("Gemm", {site.Input(1), site.Tensor(3)}, {{"transB", int64_t{1}}});
  const OnnxValue scores = graph.Add("MatMul", {vectors, graph.Unsqueeze(question, 2)});
  const OnnxValue weights = site.MaskedSoftmax(site.Mask(steps), graph.Reshape(scores, {0, steps}));
  return graph.Unsqueeze(weights, 2);
}

}  // namespace

// With u and r the sigmoids of their sums: c = tanh(x_c + r * h_c), and the state becomes (1 - a u)
// * state + a u * c, with a the step's weight. Steps behind the last vector change no step before
// them, and are masked at the end.
OnnxValue GruToOnnx(const OnnxSite& site) {
  OnnxGraph& graph = site.graph;
  const auto steps = static_cast<size_t>(site.NumVectors());
  const OnnxValue vectors = site.Vectors();
  const std::vector<OnnxAttribute> by_step = {{"axis", int64_t{1}}},
                                   by_gate = {{"axis", int64_t{2}}};
  const OnnxValue inputs =
      graph.Add("Add", {graph.Add("MatMul", {vectors, site.Tensor(0)}), site.Tensor(2)});
  const std::vector<OnnxValue> of_steps = graph.AddMany("Split", steps, {inputs}, by_step);
  std::vector<OnnxValue> weights;
  if (site.num_inputs() == 2) {
    weights = graph.AddMany("Split", steps, {StepWeights(site, vectors)}, by_step);
  }
  const OnnxValue state_weight = site.Tensor(1);
  std::vector<OnnxValue> states;  // [n, 1, units] each.
  for (size_t t = 0; t < steps; ++t) {
    const std::vector<OnnxValue> x = graph.AddMany("Split", 3, {of_steps[t]}, by_gate);
    OnnxValue update = x[0], proposal = x[2];
    if (t > 0) {  // The first state is 0, and so are its products.
      const OnnxValue products = graph.Add("MatMul", {states.back(), state_weight});
      const std::vector<OnnxValue> h = graph.AddMany("Split", 3, {products}, by_gate);
      update = graph.Add("Add", {x[0], h[0]});
      const OnnxValue reset = graph.Add("Sigmoid", {graph.Add("Add", {x[1], h[1]})});
      proposal = graph.Add("Add", {x[2], graph.Add("Mul", {reset, h[2]})});
    }
    OnnxValue share = graph.Add("Sigmoid", {update});
    if (!weights.empty()) share = graph.Add("Mul", {weights[t], share});
    OnnxValue state = graph.Add("Mul", {share, graph.Add("Tanh", {proposal})});
    if (t > 0) {
      const OnnxValue kept = graph.Add("Sub", {graph.Number(1), share});
      state = graph.Add("Add", {graph.Add("Mul", {kept, states.back()}), state});
    }
    states.push_back(state);
  }
  const OnnxValue mask = graph.Unsqueeze(site.Mask(static_cast<int64_t>(steps)), 2);
  return graph.Reshape(site.Masked(mask, graph.Concat(states, 1)), {0, site.width()});
}

}  // namespace hdps
