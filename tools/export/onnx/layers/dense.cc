// A fully connected layer: act(x W + b).
#include "tools/export/onnx/onnx_site.h"

namespace hdps {

OnnxValue DenseToOnnx(const OnnxSite& site) {
  const OnnxValue product = site.graph.Affine(site.Input(), site.Tensor(0), site.Tensor(1));
  return Activated(site.graph, site.activation(), product);
}

}  // namespace hdps
