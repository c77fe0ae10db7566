// The last vector of a sequence.
#include "common/job/layers/layer_record.h"

namespace hdps {

LayerRecord LastVectorRecord() {
  LayerRecord record;
  record.kind = "last_vector";
  record.cut = LayerCut::kOwnRows;  // The layer needs the lengths of its own rows' sequences.
  record.gives = "[n, dim]: the last vector of each example's sequence; 0 where it is empty";
  record.inputs_doc = "a sequence";
  record.measure = [](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    const LayerQuestion::Input& input = question.inputs[0];
    if (!input.shape.sequence) return NoSequence(input);
    LayerShape shape = question.LikeInput();
    shape.width = shape.vector_dim;
    return shape;
  };
  return record;
}

}  // namespace hdps
