// An activation as a layer of its own, if it does not directly follow a product.
#include "common/job/activation.h"
#include "common/job/layers/layer_record.h"
#include "common/job/spec/layer_spec.h"

namespace hdps {

LayerRecord ActivationRecord() {
  LayerRecord record;
  record.kind = "activation";
  record.cut = LayerCut::kColumns;
  record.gives = "its input, each element through the activation";
  record.fields.activation = true;
  record.measure = [](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    if (question.spec.activation == Activation::kNone) {
      return LayerProblem{"activation", "\"" + question.spec.name +
                                            "\" would do nothing; name a function, such as relu"};
    }
    return question.LikeInput();
  };
  return record;
}

}  // namespace hdps
