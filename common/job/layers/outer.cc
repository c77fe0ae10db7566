// The sum of the outer products of all pairs of vectors.
#include "common/job/layers/layer_record.h"

namespace hdps {

LayerRecord OuterRecord() {
  LayerRecord record;
  record.kind = "outer";
  record.gives =
      "[n, dim x dim]: the outer products of all pairs of vectors, added, which is that of their "
      "sum "
      "with itself (Qu et al. 2016, eq. 12)";
  record.inputs_doc = "an embedding";
  record.measure = [](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    const LayerQuestion::Input& input = question.inputs[0];
    if (input.shape.vector_dim == 0) return NoVectors(input);
    LayerShape shape;
    shape.width = uint64_t{input.shape.vector_dim} * input.shape.vector_dim;
    shape.learns = input.shape.learns;
    return shape;
  };
  return record;
}

}  // namespace hdps
