// The cross network of DCN-v2.
#include "common/job/layers/layer_record.h"
#include "common/job/spec/layer_spec.h"

namespace hdps {

LayerRecord CrossRecord() {
  LayerRecord record;
  record.kind = "cross";
  record.gives = "as wide as its input: `units` layers of DCN-v2 (Wang et al. 2021, eq. 1)";
  record.units_doc = "number of layers";
  record.fields.units = true;
  record.measure = [](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    LayerShape shape;
    const uint64_t width = shape.width = question.inputs[0].shape.width;
    shape.learns = true;
    for (uint32_t level = 0; level < question.spec.units; ++level) {
      const std::string number = std::to_string(level);
      shape.tensors.push_back({"weight" + number, {width, width}, GlorotInit(width, width)});
      shape.tensors.push_back({"bias" + number, {width}, {InitKind::kZeros, 0.0f}});
    }
    return shape;
  };
  return record;
}

}  // namespace hdps
