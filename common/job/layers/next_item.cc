// A loss for states of a sequence from the items that follow them.
#include "common/job/layers/layer_record.h"

namespace hdps {

LayerRecord NextItemRecord() {
  LayerRecord record;
  record.kind = "next_item";
  record.cut = LayerCut::kOwnRows;  // It looks at the next example of its worker.
  record.gives =
      "its first input, states behind the items of a sequence; in training `loss_weight` times a "
      "loss by which each state tells the item that follows it from that of the next example of "
      "the "
      "worker's part is added to the gradients, not to the loss that is shown (DIEN, Zhou et al. "
      "2019, eq. 5)";
  record.inputs_doc = "states, and the sequence that they are behind, of one width";
  record.inputs_min = record.inputs_max = 2;
  record.numbers = {{"loss_weight", 0, 1e6, 1, "Of the loss that the layer adds.",
                     /*whole=*/false, /*may_change=*/true}};
  record.measure = [](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    const LayerQuestion::Input &states = question.inputs[0], &items = question.inputs[1];
    for (const LayerQuestion::Input& input : question.inputs) {
      if (!input.shape.sequence) return NoSequence(input);
    }
    if (states.shape.width != items.shape.width ||
        states.shape.vector_dim != items.shape.vector_dim) {
      return LayerProblem{"inputs", states.Shown() + " and " + items.Shown() +
                                        " have to be as many vectors of one dim"};
    }
    LayerShape shape = question.LikeInput();
    shape.sequence = true;
    shape.learns |= items.shape.learns;
    return shape;
  };
  return record;
}

}  // namespace hdps
