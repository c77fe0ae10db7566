// Drops elements of a layer at random while training.
#include "common/job/layers/layer_record.h"

namespace hdps {

LayerRecord DropoutRecord() {
  LayerRecord record;
  record.kind = "dropout";
  record.cut = LayerCut::kOwnRows;  // It draws random numbers for each row of the step.
  record.gives =
      "its input; in training each element is 0 with probability `rate`, the others divided by 1 - "
      "`rate` (Srivastava et al. 2014)";
  record.numbers = {
      {"rate", 0, 0.999, 0.5,
       "Elements left out in training, to the nearest 1/65536, drawn from seed, layer, epoch, row "
       "and column: the same for any number of workers.",
       /*whole=*/false, /*may_change=*/true}};
  record.measure = [](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    LayerShape shape = question.LikeInput();
    shape.sequence = question.inputs[0].shape.sequence;
    return shape;
  };
  return record;
}

}  // namespace hdps
