// The mean of each vector.
#include "tools/export/onnx/onnx_site.h"

namespace hdps {

OnnxValue VectorMeansToOnnx(const OnnxSite& site) {
  return site.graph.Add("ReduceMean", {site.Vectors()},
                        {{"axes", std::vector<int64_t>{2}}, {"keepdims", int64_t{0}}});
}

}  // namespace hdps
