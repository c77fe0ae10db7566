// Layer normalization.
#include "tools/export/onnx/onnx_site.h"

namespace hdps {

OnnxValue LayerNormToOnnx(const OnnxSite& site) {
  return site.graph.Add("LayerNormalization", {site.Input(), site.Tensor(0), site.Tensor(1)},
                        {{"epsilon", static_cast<float>(site.Number("epsilon"))}});
}

}  // namespace hdps
