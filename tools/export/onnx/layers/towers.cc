// Puts the vectors of user and item side by side.
#include "tools/export/onnx/onnx_site.h"

namespace hdps {

OnnxValue TowersToOnnx(const OnnxSite& site) {
  return site.graph.Concat({site.Input(0), site.Input(1)}, 1);
}

}  // namespace hdps
