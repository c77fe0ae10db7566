// The inner product of two rows.
#include "common/job/layers/layer_record.h"

namespace hdps {

LayerRecord InnerRecord() {
  LayerRecord record;
  record.kind = "inner";
  record.gives = "[n, 1]: the inner product of its inputs; the cosine behind two `normalize`";
  record.inputs_doc = "two layers of one width";
  record.inputs_min = record.inputs_max = 2;
  record.measure = [](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    const LayerQuestion::Input &a = question.inputs[0], &b = question.inputs[1];
    if (a.shape.width != b.shape.width) {
      return LayerProblem{"inputs", a.Shown() + " and " + b.Shown() +
                                        " have no inner product: both must be of one width"};
    }
    LayerShape shape;
    shape.width = 1;
    shape.learns = a.shape.learns || b.shape.learns;
    return shape;
  };
  return record;
}

}  // namespace hdps
