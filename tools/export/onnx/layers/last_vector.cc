// The last vector of each example's sequence; 0 where it is empty.
#include "tools/export/onnx/onnx_site.h"

namespace hdps {

OnnxValue LastVectorToOnnx(const OnnxSite& site) {
  OnnxGraph& graph = site.graph;
  const OnnxValue mask = site.LastMask(site.NumVectors());
  const OnnxValue last = site.Masked(graph.Unsqueeze(mask, 2), site.Vectors());
  return graph.ReduceSum(last, 1);
}

}  // namespace hdps
