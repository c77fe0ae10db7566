// The attention of DIN: pools a sequence with weights from the relation of each vector to a target.
#include "common/job/layers/layer_record.h"
#include "common/job/spec/layer_spec.h"

namespace hdps {

LayerRecord DinRecord() {
  LayerRecord record;
  record.kind = "din";
  record.cut = LayerCut::kOwnRows;  // The layer needs the lengths of its own rows' sequences.
  record.gives =
      "[n, dim]: the sequence's vectors k, each times its score, added up; the score is an MLP of "
      "one hidden layer of `units` with the activation over [k, q, k - q, k * q], q the target "
      "(DIN, Zhou et al. 2018, eq. 3)";
  record.inputs_doc = "a sequence, and the target, as wide as one of its vectors";
  record.units_doc = "width of the hidden layer that scores a vector";
  record.inputs_min = record.inputs_max = 2;
  record.fields.units = record.fields.activation = true;
  const LayerWord scores = {"scores",
                            {"plain", "softmax"},
                            "Of the vectors of a sequence: as they are, as in the paper, or "
                            "softmax over the sequence."};
  record.words = {scores};
  record.measure =
      [scores](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    const LayerQuestion::Input &sequence = question.inputs[0], &target = question.inputs[1];
    if (sequence.spec.kind != "sequence") {
      return LayerProblem{"inputs", sequence.Shown() + " is no layer of kind sequence"};
    }
    const uint64_t dim = sequence.shape.vector_dim, units = question.spec.units;
    if (target.shape.width != dim) {
      return LayerProblem{"inputs", target.Shown() + " has to be as wide as a vector of \"" +
                                        sequence.spec.name + "\", " + std::to_string(dim)};
    }
    LayerShape shape;
    shape.width = dim;
    shape.learns = true;
    shape.tensors = {{"weight", {4 * dim, units}, GlorotInit(4 * dim, units)},
                     {"bias", {units}, {InitKind::kZeros, 0.0f}},
                     {"score", {units, 1}, GlorotInit(units, 1)}};
    if (WordOf(question.spec, scores) == "plain") {
      // A bias of 1 makes it begin as the plain sum of the vectors, because near 0 the gradients of
      // keys and scores would be products of two small numbers. Softmax ignores constants, so there
      // it has no effect.
      shape.tensors.push_back({"score_bias", {1}, {InitKind::kConstant, 1.0f}});
    }
    return shape;
  };
  return record;
}

}  // namespace hdps
