// Gives its first input: the loss that it adds belongs to training.
#include "tools/export/onnx/onnx_site.h"

namespace hdps {

OnnxValue NextItemToOnnx(const OnnxSite& site) { return site.Input(); }

}  // namespace hdps
