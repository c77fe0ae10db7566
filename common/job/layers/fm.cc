// The second-order term of a factorization machine.
#include "common/job/layers/layer_record.h"

namespace hdps {

LayerRecord FmRecord() {
  LayerRecord record;
  record.kind = "fm";
  record.gives = "[n, 1]: products of all pairs (Rendle 2010, as in DeepFM)";
  record.inputs_doc = "an embedding";
  record.measure = [](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    const LayerQuestion::Input& input = question.inputs[0];
    if (input.shape.vector_dim == 0) return NoVectors(input);
    LayerShape shape;
    shape.width = 1;
    shape.learns = input.shape.learns;
    return shape;
  };
  return record;
}

}  // namespace hdps
