// Adds other layers of equal width.
#include "common/job/layers/layer_record.h"

namespace hdps {

LayerRecord SumRecord() {
  LayerRecord record;
  record.kind = "sum";
  record.cut = LayerCut::kColumns;
  record.gives = "its inputs added, all of one width";
  record.inputs_max = kManyInputs;
  record.measure = [](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    LayerShape shape = question.LikeInput();
    for (const LayerQuestion::Input& input : question.inputs) {
      if (input.shape.width != shape.width) {
        return LayerProblem{"inputs", question.inputs[0].Shown() + " and " + input.Shown() +
                                          " cannot be added: all must be of one width"};
      }
      shape.learns |= input.shape.learns;
      if (input.shape.vector_dim != shape.vector_dim) shape.vector_dim = 0;
    }
    return shape;
  };
  return record;
}

}  // namespace hdps
