// Learned positions of the vectors of a sequence.
#include "common/job/layers/layer_record.h"
#include "common/job/spec/layer_spec.h"

namespace hdps {

LayerRecord PositionsRecord() {
  LayerRecord record;
  record.kind = "positions";
  record.cut = LayerCut::kOwnRows;  // The layer needs the lengths of its own rows' sequences.
  record.gives =
      "[n, vectors x dim]: each vector of a sequence plus a learned one of its position, counted "
      "from the last; 0 behind them. A second input is one vector more, behind the last (SASRec, "
      "Kang and McAuley 2018, eq. 1; BST, Chen et al. 2019)";
  record.inputs_doc = "a sequence, and possibly a vector as wide as one of its own";
  record.inputs_max = 2;
  record.measure = [](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    const LayerQuestion::Input& sequence = question.inputs[0];
    if (!sequence.shape.sequence) return NoSequence(sequence);
    LayerShape shape = question.LikeInput();
    const uint64_t dim = shape.vector_dim;
    if (question.inputs.size() == 2) {
      const LayerQuestion::Input& follower = question.inputs[1];
      if (follower.shape.width != dim) {
        return LayerProblem{"inputs", follower.Shown() + " has to be as wide as a vector of \"" +
                                          sequence.spec.name + "\", " + std::to_string(dim)};
      }
      shape.width += dim;
    }
    shape.learns = shape.sequence = true;
    shape.tensors = {{"weight", {shape.width / dim, dim}, {InitKind::kNormal, 0.01f}}};
    shape.tensors[0].uses = 0;
    return shape;
  };
  return record;
}

}  // namespace hdps
