// Leaves nothing out where nothing is trained.
#include "tools/export/onnx/onnx_site.h"

namespace hdps {

OnnxValue DropoutToOnnx(const OnnxSite& site) { return site.Input(); }

}  // namespace hdps
