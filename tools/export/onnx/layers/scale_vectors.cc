// Multiplies each vector by a number of its own.
#include "tools/export/onnx/onnx_site.h"

namespace hdps {

OnnxValue ScaleVectorsToOnnx(const OnnxSite& site) {
  const OnnxValue factors = site.graph.Unsqueeze(site.Input(1), 2);
  const OnnxValue scaled = site.graph.Add("Mul", {site.Vectors(), factors});
  return site.graph.Reshape(scaled, {0, site.width()});
}

}  // namespace hdps
