// Dot products of all pairs of vectors.
#include "common/job/layers/layer_record.h"
#include "common/job/spec/layer_spec.h"

namespace hdps {

LayerRecord DotRecord() {
  LayerRecord record;
  record.kind = "dot";
  record.gives = "one dot product a pair (DLRM, Naumov et al. 2019)";
  record.inputs_doc = "an embedding, and if wanted a dense vector as wide as one row";
  record.inputs_max = 2;
  record.measure = [](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    const LayerQuestion::Input& embedding = question.inputs[0];
    const uint32_t dim = embedding.shape.vector_dim;
    if (dim == 0) return NoVectors(embedding);
    uint64_t vectors = embedding.shape.width / dim;
    LayerShape shape;
    shape.learns = embedding.shape.learns;
    if (question.inputs.size() == 2) {
      const LayerQuestion::Input& dense = question.inputs[1];
      if (dense.shape.width != dim) {
        return LayerProblem{"inputs", dense.Shown() + " has to be as wide as a row of \"" +
                                          embedding.spec.name + "\", " + std::to_string(dim)};
      }
      shape.learns |= dense.shape.learns;
      ++vectors;
    }
    if (vectors < 2) return LayerProblem{"inputs", "dot products need at least two vectors"};
    shape.width = vectors * (vectors - 1) / 2;
    return shape;
  };
  return record;
}

}  // namespace hdps
