// The logit of a joint event, -log(e^-a + e^-b + e^-(a + b)), where no exponent is above 0.
#include "tools/export/onnx/onnx_site.h"

namespace hdps {

OnnxValue JointToOnnx(const OnnxSite& site) {
  OnnxGraph& graph = site.graph;
  const OnnxValue a = graph.Add("Neg", {site.Input(0)}), b = graph.Add("Neg", {site.Input(1)});
  const OnnxValue both = graph.Add("Add", {a, b});
  const OnnxValue largest = graph.Add("Max", {a, b, both});
  std::vector<OnnxValue> terms;
  for (const OnnxValue& exponent : {a, b, both}) {
    terms.push_back(graph.Add("Exp", {graph.Add("Sub", {exponent, largest})}));
  }
  const OnnxValue log = graph.Add("Log", {graph.Sum(terms)});
  return graph.Add("Neg", {graph.Add("Add", {largest, log})});
}

}  // namespace hdps
