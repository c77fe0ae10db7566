// A fully connected layer: act(x W + b).
#include "common/job/spec/layer_spec.h"
#include "tools/export/onnx/onnx_site.h"

namespace hdps {

OnnxValue DenseToOnnx(const OnnxSite& site) {
  const OnnxValue product = site.graph.Add("Gemm", {site.Input(), site.Tensor(0), site.Tensor(1)});
  return Activated(site.graph, site.spec.activation, product);
}

}  // namespace hdps
