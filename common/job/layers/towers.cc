// The end of a two-tower model whose loss compares every user with every item.
#include "common/job/layers/layer_record.h"

namespace hdps {

LayerRecord TowersRecord() {
  LayerRecord record;
  record.kind = "towers";
  record.gives =
      "[n, 2 x dim]: the vector of a user and that of an item, for a loss over all pairs of a "
      "batch";
  record.inputs_doc = "the user's tower and the item's, of one width";
  record.inputs_min = record.inputs_max = 2;
  record.measure = [](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    const LayerQuestion::Input &user = question.inputs[0], &item = question.inputs[1];
    if (user.shape.width != item.shape.width) {
      return LayerProblem{"inputs", user.Shown() + " and " + item.Shown() +
                                        " cannot be compared: both must be of one width"};
    }
    LayerShape shape;
    shape.width = 2 * user.shape.width;
    shape.learns = user.shape.learns || item.shape.learns;
    return shape;
  };
  return record;
}

}  // namespace hdps
