// Scales rows to length 1, divided by the temperature.
#include "tools/export/onnx/onnx_site.h"

namespace hdps {

OnnxValue NormalizeToOnnx(const OnnxSite& site) {
  constexpr float kLengthMin = 1e-12f;  // As worker/model/layers/normalize.cc has it.
  OnnxGraph& graph = site.graph;
  const OnnxValue length =
      graph.Add("ReduceL2", {site.Input()}, {{"axes", std::vector<int64_t>{1}}});
  const OnnxValue least = graph.Add("Max", {length, graph.Number(kLengthMin)});
  const auto factor = static_cast<float>(1 / site.Number("temperature"));
  return graph.Add("Mul", {graph.Add("Div", {site.Input(), least}), graph.Number(factor)});
}

}  // namespace hdps
