// Multi-head self-attention over the vectors of an example.
#include <cmath>

#include "common/job/layers/layer_record.h"
#include "common/job/spec/layer_spec.h"

namespace hdps {

LayerRecord AttentionRecord() {
  LayerRecord record;
  record.kind = "attention";
  record.gives =
      "[n, vectors x units]: each vector becomes relu(what it attends to + x W), by `heads` "
      "softmax "
      "attentions over all vectors (AutoInt, Song et al. 2019, eq. 5-8)";
  record.inputs_doc = "an embedding, or another attention";
  record.units_doc = "width of one vector of the output, a multiple of heads";
  record.fields.units = true;
  const LayerNumber heads = {"heads", 1, 256, 2, "Attentions side by side."};
  record.numbers = {heads};
  record.measure =
      [heads](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    const LayerQuestion::Input& input = question.inputs[0];
    const uint64_t dim = input.shape.vector_dim, units = question.spec.units;
    if (dim == 0) return NoVectors(input);
    const double count = NumberOf(question.spec, heads);
    if (count != std::floor(count)) return LayerProblem{"heads", "has to be a whole number"};
    if (units % static_cast<uint64_t>(count) != 0) {
      return LayerProblem{"units", std::to_string(units) + " columns cannot be split among " +
                                       std::to_string(static_cast<uint64_t>(count)) +
                                       " heads; take a multiple"};
    }
    LayerShape shape;
    shape.width = input.shape.width / dim * units;
    shape.vector_dim = static_cast<uint32_t>(units);
    shape.learns = true;
    for (const char* part : {"query", "key", "value", "residual"}) {
      shape.tensors.push_back({part, {dim, units}, GlorotInit(dim, units)});
    }
    return shape;
  };
  return record;
}

}  // namespace hdps
