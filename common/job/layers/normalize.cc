// Scales rows to length 1.
#include "common/job/layers/layer_record.h"

namespace hdps {

LayerRecord NormalizeRecord() {
  LayerRecord record;
  record.kind = "normalize";
  record.gives =
      "its input, each row divided by its length (at least 1e-12) and by `temperature` (two "
      "towers, "
      "Yi et al. 2019, section 3)";
  record.numbers = {
      {"temperature", 1e-4, 1e4, 1, "A smaller one makes larger logits, and a sharper softmax."}};
  record.measure = [](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    LayerShape shape = question.LikeInput();
    shape.vector_dim = 0;  // The row is one vector.
    return shape;
  };
  return record;
}

}  // namespace hdps
