// A gated recurrent unit over a sequence, also with attention to a target.
#include "common/job/layers/layer_record.h"
#include "common/job/spec/layer_spec.h"

namespace hdps {

LayerRecord GruRecord() {
  LayerRecord record;
  record.kind = "gru";
  record.cut = LayerCut::kOwnRows;  // The layer needs the lengths of its own rows' sequences.
  record.gives =
      "[n, vectors x units]: the state of a gated recurrent unit behind each vector of a sequence; "
      "0 behind the last. A second input, the target, makes it an AUGRU: each update gate is "
      "multiplied with the softmax over the sequence of <vector W, target> (DIEN, Zhou et al. "
      "2019, "
      "eq. 1-4, 6 and 10-11)";
  record.inputs_doc = "a sequence, and possibly a target";
  record.units_doc = "width of a state";
  record.fields.units = true;
  record.inputs_max = 2;
  record.measure = [](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    const LayerQuestion::Input& input = question.inputs[0];
    if (!input.shape.sequence) return NoSequence(input);
    const uint64_t dim = input.shape.vector_dim, units = question.spec.units;
    const uint64_t vectors = input.shape.width / dim;
    LayerShape shape;
    shape.width = vectors * units;
    shape.vector_dim = static_cast<uint32_t>(units);
    shape.learns = shape.sequence = true;
    shape.tensors = {{"input", {dim, 3 * units}, GlorotInit(dim, units)},
                     {"state", {units, 3 * units}, GlorotInit(units, units)},
                     {"bias", {3 * units}, {InitKind::kZeros, 0.0f}}};
    shape.tensors[0].uses = shape.tensors[1].uses = vectors;
    if (question.inputs.size() == 2) {
      const uint64_t width = question.inputs[1].shape.width;
      shape.tensors.push_back({"attention", {dim, width}, GlorotInit(dim, width)});
    }
    return shape;
  };
  return record;
}

}  // namespace hdps
