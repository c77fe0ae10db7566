// Multiplies each vector of an embedding by a number of its own.
#include "common/job/layers/layer_record.h"
#include "common/job/spec/layer_spec.h"

namespace hdps {

LayerRecord ScaleVectorsRecord() {
  LayerRecord record;
  record.kind = "scale_vectors";
  record.gives =
      "as wide as the embedding: each vector times its factor (the re-weight of Huang et al. 2019, "
      "eq. 5)";
  record.inputs_doc = "an embedding, and a layer with a column a vector, its factor";
  record.inputs_min = record.inputs_max = 2;
  record.measure = [](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    const LayerQuestion::Input &vectors = question.inputs[0], &factors = question.inputs[1];
    if (vectors.shape.vector_dim == 0) return NoVectors(vectors);
    const uint64_t count = vectors.shape.width / vectors.shape.vector_dim;
    if (factors.shape.width != count) {
      return LayerProblem{"inputs", factors.Shown() + " has to have a column for each of the " +
                                        std::to_string(count) + " vectors of \"" +
                                        vectors.spec.name + "\""};
    }
    LayerShape shape = question.LikeInput();
    shape.learns |= factors.shape.learns;
    return shape;
  };
  return record;
}

}  // namespace hdps
