// A block of a transformer over a sequence.
#include <cmath>

#include "common/job/layers/layer_record.h"
#include "common/job/spec/layer_spec.h"

namespace hdps {

LayerRecord TransformerRecord() {
  LayerRecord record;
  record.kind = "transformer";
  record.cut = LayerCut::kOwnRows;  // The layer needs the lengths of its own rows' sequences.
  record.gives =
      "as wide as its input: self-attention among the vectors of a sequence, then an MLP of one "
      "hidden layer of `units` with the activation on each, both added to what they read and "
      "normalized (Vaswani et al. 2017, eq. 1-2); 0 behind the last vector";
  record.inputs_doc = "a sequence";
  record.units_doc = "width of the hidden layer";
  record.fields.units = record.fields.activation = true;
  const LayerNumber heads = {"heads", 1, 256, 2, "Attentions side by side."};
  record.numbers = {heads};
  record.words = {{"sees",
                   {"all", "earlier"},
                   "Which vectors of its sequence each one attends to: all, or itself and those "
                   "before it."},
                  {"norm",
                   {"after", "before"},
                   "Where vectors are normalized: the sums (BST), or what attention and MLP read "
                   "(SASRec)."}};
  record.measure =
      [heads](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    const LayerQuestion::Input& input = question.inputs[0];
    if (!input.shape.sequence) return NoSequence(input);
    const double count = NumberOf(question.spec, heads);
    if (count != std::floor(count)) return LayerProblem{"heads", "has to be a whole number"};
    const uint64_t dim = input.shape.vector_dim, units = question.spec.units;
    if (dim % static_cast<uint64_t>(count) != 0) {
      return LayerProblem{"heads", std::to_string(static_cast<uint64_t>(count)) +
                                       " heads cannot share the " + std::to_string(dim) +
                                       " columns of a vector; take a divisor"};
    }
    LayerShape shape = question.LikeInput();
    shape.learns = shape.sequence = true;
    for (const char* part : {"query", "key", "value", "output"}) {
      shape.tensors.push_back({part, {dim, dim}, GlorotInit(dim, dim)});
    }
    shape.tensors.push_back({"hidden_weight", {dim, units}, GlorotInit(dim, units)});
    shape.tensors.push_back({"weight", {units, dim}, GlorotInit(units, dim)});
    for (LayerShape::Tensor& matrix : shape.tensors) matrix.uses = shape.width / dim;
    const InitSpec ones = {InitKind::kConstant, 1.0f}, zeros = {InitKind::kZeros, 0.0f};
    shape.tensors.push_back({"hidden_bias", {units}, zeros});
    shape.tensors.push_back({"bias", {dim}, zeros});
    for (const char* part : {"attention", "mlp"}) {
      shape.tensors.push_back({std::string(part) + "_gain", {dim}, ones});
      shape.tensors.push_back({std::string(part) + "_shift", {dim}, zeros});
    }
    return shape;
  };
  return record;
}

}  // namespace hdps
