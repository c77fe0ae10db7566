// The numeric columns of an example as a layer.
#include "common/job/job_facts.h"
#include "common/job/layers/layer_record.h"

namespace hdps {

LayerRecord NumericRecord() {
  LayerRecord record;
  record.kind = "numeric";
  record.cut = LayerCut::kNumbers;
  record.gives = "[n, numeric columns], as read";
  record.inputs_min = record.inputs_max = 0;
  record.measure = [](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    if (question.features.numeric.empty()) {
      return LayerProblem{"kind", "the data has no numeric columns"};
    }
    LayerShape shape;
    shape.width = question.features.numeric.size();
    return shape;
  };
  return record;
}

}  // namespace hdps
