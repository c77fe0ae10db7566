// Adds one number to each column.
#include "common/job/layers/layer_record.h"

namespace hdps {

LayerRecord BiasRecord() {
  LayerRecord record;
  record.kind = "bias";
  record.cut = LayerCut::kColumns;
  record.gives = "x + b";
  record.measure = [](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    LayerShape shape;
    shape.width = question.inputs[0].shape.width;
    shape.learns = true;
    shape.tensors = {{"bias", {shape.width}, {InitKind::kZeros, 0.0f}}};
    return shape;
  };
  return record;
}

}  // namespace hdps
