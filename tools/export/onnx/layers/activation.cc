// Applies an activation function to each element.
#include "tools/export/onnx/onnx_site.h"

namespace hdps {

OnnxValue ActivationToOnnx(const OnnxSite& site) {
  return Activated(site.graph, site.activation(), site.Input());
}

}  // namespace hdps
