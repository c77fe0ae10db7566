// Layer normalization.
#include "common/job/layers/layer_record.h"

namespace hdps {

LayerRecord LayerNormRecord() {
  LayerRecord record;
  record.kind = "layer_norm";
  record.gives =
      "as wide as its input: each row less its mean, divided by its deviation, times a gain plus a "
      "bias a column (Ba et al. 2016)";
  record.numbers = {{"epsilon", 1e-12, 1, 1e-5, "Added to the variance of a row or column."}};
  record.measure = [](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    LayerShape shape;
    shape.width = question.inputs[0].shape.width;
    shape.learns = true;
    shape.tensors = {{"gain", {shape.width}, {InitKind::kConstant, 1.0f}},
                     {"bias", {shape.width}, {InitKind::kZeros, 0.0f}}};
    return shape;
  };
  return record;
}

}  // namespace hdps
