// A fully connected layer.
#include "common/job/layers/layer_record.h"
#include "common/job/spec/layer_spec.h"

namespace hdps {

LayerRecord DenseRecord() {
  LayerRecord record;
  record.kind = "dense";
  record.cut = LayerCut::kMatrix;
  record.gives = "[n, units]: x W + b, then the activation";
  record.units_doc = "outputs";
  record.fields.units = record.fields.activation = true;
  LayerWord init = {"init", FanInits(),
                    "How its weights begin, by how many inputs and outputs each has: Xavier "
                    "(Glorot and Bengio 2010), or He (He et al. 2015), meant for relu. zeros: of a "
                    "linear part, whose logit is 0 until it has learned. Whatever the fans: ones; "
                    "normal, with deviation 0.01; uniform, in +-0.07. MindSpore's weight_init."};
  init.words.insert(init.words.end(), PlainInits().begin(), PlainInits().end());
  const LayerWord bias_init = {"bias_init", PlainInits(),
                               "How its bias begins, as `init` says of these words."};
  record.words = {init, bias_init};
  record.measure =
      [init, bias_init](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    const uint64_t inputs = question.inputs[0].shape.width, units = question.spec.units;
    LayerShape shape;
    shape.width = units;
    shape.learns = true;
    shape.tensors = {
        {"weight", {inputs, units}, FanInit(WordOf(question.spec, init), inputs, units)},
        {"bias", {units}, FanInit(WordOf(question.spec, bias_init), inputs, units)}};
    return shape;
  };
  return record;
}

}  // namespace hdps
