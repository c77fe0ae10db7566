// Concatenates other layers.
#include "common/job/layers/layer_record.h"

namespace hdps {

LayerRecord ConcatRecord() {
  LayerRecord record;
  record.kind = "concat";
  record.gives = "its inputs side by side";
  record.inputs_max = kManyInputs;
  record.measure = [](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    LayerShape shape = question.LikeInput();
    shape.width = 0;
    for (const LayerQuestion::Input& input : question.inputs) {
      shape.width += input.shape.width;
      shape.learns |= input.shape.learns;
      if (input.shape.vector_dim != shape.vector_dim) shape.vector_dim = 0;
    }
    return shape;
  };
  return record;
}

}  // namespace hdps
