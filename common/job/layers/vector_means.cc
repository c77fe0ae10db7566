// The mean of each vector of an embedding.
#include "common/job/layers/layer_record.h"

namespace hdps {

LayerRecord VectorMeansRecord() {
  LayerRecord record;
  record.kind = "vector_means";
  record.gives = "[n, vectors]: the mean of each vector (the squeeze of Huang et al. 2019, eq. 3)";
  record.inputs_doc = "an embedding";
  record.measure = [](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    const LayerQuestion::Input& input = question.inputs[0];
    if (input.shape.vector_dim == 0) return NoVectors(input);
    LayerShape shape;
    shape.width = input.shape.width / input.shape.vector_dim;
    shape.learns = input.shape.learns;
    return shape;
  };
  return record;
}

}  // namespace hdps
