// The inner product of two rows.
#include "tools/export/onnx/onnx_site.h"

namespace hdps {

OnnxValue InnerToOnnx(const OnnxSite& site) {
  const OnnxValue products = site.graph.Add("Mul", {site.Input(0), site.Input(1)});
  return site.graph.ReduceSum(products, 1, /*keep=*/true);
}

}  // namespace hdps
