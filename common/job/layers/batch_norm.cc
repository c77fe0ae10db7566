// Batch normalization.
#include "common/job/layers/layer_record.h"

namespace hdps {

LayerRecord BatchNormRecord() {
  LayerRecord record;
  record.kind = "batch_norm";
  record.cut = LayerCut::kOwnRows;  // It normalizes over a worker's part.
  record.gives =
      "as wide as its input: each column less its mean, divided by its deviation, times a gain "
      "plus a bias (Ioffe and Szegedy 2015). In training mean and deviation are those of the "
      "worker's part of the batch, or of all of it (one example takes the running ones), in "
      "evaluation the running ones";
  record.numbers = {
      {"momentum", 0.001, 0.9999, 0.9,
       "What stays of the running mean and variance in a step, as Keras counts: 0.9 is PyTorch's "
       "momentum of 0.1."},
      {"epsilon", 1e-12, 1, 1e-5, "Added to the variance of a row or column."}};
  record.words = {
      {"over",
       {"part", "batch"},
       "What mean and deviation are taken over in training: `part`, each worker's, or "
       "micro-batch's, "
       "own examples; `batch`, all examples of the step, as if one worker had them (PyTorch's "
       "SyncBatchNorm). `batch` only in sync mode; it costs two exchanges of a few numbers a "
       "column "
       "between the workers each step, which nothing hides."}};
  record.measure =
      [record](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    const auto momentum = static_cast<float>(NumberOf(question.spec, record.numbers[0]));
    LayerShape shape;
    shape.width = question.inputs[0].shape.width;
    shape.learns = true;
    shape.tensors = {{"gain", {shape.width}, {InitKind::kConstant, 1.0f}},
                     {"bias", {shape.width}, {InitKind::kZeros, 0.0f}},
                     {"running_mean", {shape.width}, {InitKind::kZeros, 0.0f}, momentum},
                     {"running_variance", {shape.width}, {InitKind::kConstant, 1.0f}, momentum}};
    return shape;
  };
  return record;
}

}  // namespace hdps
