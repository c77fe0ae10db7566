// Experts mixed by a gate.
#include "common/job/layers/layer_record.h"

namespace hdps {

LayerRecord MixtureRecord() {
  LayerRecord record;
  record.kind = "mixture";
  record.gives =
      "one expert's width: the experts' columns added, each times the softmax of its gate (MMoE, "
      "Ma "
      "et al. 2018, eq. 6-7)";
  record.inputs_doc = "experts of one width side by side, and a gate with a column an expert";
  record.inputs_min = record.inputs_max = 2;
  record.measure = [](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    const LayerQuestion::Input &experts = question.inputs[0], &gate = question.inputs[1];
    if (experts.shape.width % gate.shape.width != 0) {
      return LayerProblem{"inputs", experts.Shown() + " cannot be split into as many experts as " +
                                        gate.Shown() + " has columns"};
    }
    LayerShape shape;
    shape.width = experts.shape.width / gate.shape.width;
    shape.learns = experts.shape.learns || gate.shape.learns;
    return shape;
  };
  return record;
}

}  // namespace hdps
