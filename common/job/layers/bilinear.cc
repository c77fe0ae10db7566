// Bilinear interaction of all pairs of vectors.
#include "common/job/layers/layer_record.h"

namespace hdps {

LayerRecord BilinearRecord() {
  LayerRecord record;
  record.kind = "bilinear";
  record.gives =
      "[n, pairs x dim]: for vectors f < g in their order, v_f W times v_g, element by element "
      "(Huang "
      "et al. 2019, eq. 6-8)";
  record.inputs_doc = "an embedding of two vectors or more";
  record.words = {{"matrices",
                   {"each", "all", "interaction"},
                   "each: one W for each vector f. all: one W. interaction: one W a pair."}};
  record.measure = [words = record.words](
                       const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    const LayerQuestion::Input& input = question.inputs[0];
    const uint64_t dim = input.shape.vector_dim;
    if (dim == 0) return NoVectors(input);
    const uint64_t vectors = input.shape.width / dim;
    if (vectors < 2) return LayerProblem{"inputs", "pairs need at least two vectors"};
    const uint64_t pairs = vectors * (vectors - 1) / 2;
    const std::string& matrices = WordOf(question.spec, words[0]);
    const uint64_t count = matrices == "all" ? 1 : matrices == "each" ? vectors - 1 : pairs;
    LayerShape shape;
    shape.width = pairs * dim;
    shape.vector_dim = static_cast<uint32_t>(dim);
    shape.learns = true;
    // The matrices are side by side.
    shape.tensors = {{"weight", {dim, count * dim}, GlorotInit(dim, dim)}};
    if (count == 1) shape.tensors[0].uses = vectors - 1;
    return shape;
  };
  return record;
}

}  // namespace hdps
