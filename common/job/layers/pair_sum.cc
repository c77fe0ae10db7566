// Bi-interaction pooling.
#include "common/job/layers/layer_record.h"

namespace hdps {

LayerRecord PairSumRecord() {
  LayerRecord record;
  record.kind = "pair_sum";
  record.gives =
      "[n, dim]: the elementwise products of all pairs of vectors, added (bi-interaction pooling, "
      "He and Chua 2017, eq. 4)";
  record.inputs_doc = "an embedding";
  record.measure = [](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    const LayerQuestion::Input& input = question.inputs[0];
    if (input.shape.vector_dim == 0) return NoVectors(input);
    LayerShape shape;
    shape.width = shape.vector_dim = input.shape.vector_dim;
    shape.learns = input.shape.learns;
    return shape;
  };
  return record;
}

}  // namespace hdps
