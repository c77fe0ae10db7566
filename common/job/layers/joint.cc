// The logit of a joint event: one thing happens and then another.
#include "common/job/layers/layer_record.h"

namespace hdps {

LayerRecord JointRecord() {
  LayerRecord record;
  record.kind = "joint";
  record.cut = LayerCut::kColumns;
  record.gives =
      "as wide as one input: the logits of the products of two probabilities, from their logits "
      "(ESMM, Ma et al. 2018, eq. 1)";
  record.inputs_doc = "two layers of logits of one width";
  record.inputs_min = record.inputs_max = 2;
  record.measure = [](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    const LayerQuestion::Input &a = question.inputs[0], &b = question.inputs[1];
    if (a.shape.width != b.shape.width) {
      return LayerProblem{"inputs", a.Shown() + " and " + b.Shown() +
                                        " have no products: both must be of one width"};
    }
    LayerShape shape;
    shape.width = a.shape.width;
    shape.learns = a.shape.learns || b.shape.learns;
    return shape;
  };
  return record;
}

}  // namespace hdps
