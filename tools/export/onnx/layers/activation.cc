// Applies an activation function to each element.
#include "common/job/spec/layer_spec.h"
#include "tools/export/onnx/onnx_site.h"

namespace hdps {

OnnxValue ActivationToOnnx(const OnnxSite& site) {
  return Activated(site.graph, site.spec.activation, site.Input());
}

}  // namespace hdps
