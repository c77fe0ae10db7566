// Low-rank cross layers as a mixture of experts.
#include "common/job/layers/layer_record.h"
#include "common/job/spec/layer_spec.h"

namespace hdps {

LayerRecord CrossMixRecord() {
  LayerRecord record;
  record.kind = "cross_mix";
  record.gives =
      "as wide as its input: `units` cross layers, each a mixture of experts of low rank (DCN-Mix, "
      "Wang et al. 2021, eq. 4), gates by softmax";
  record.units_doc = "number of layers";
  record.fields.units = true;
  record.numbers = {{"experts", 1, 64, 4, "Experts of one layer.", true},
                    {"rank", 1, 4096, 32, "Columns an expert projects its input to.", true}};
  record.measure = [numbers = record.numbers](
                       const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    const auto experts = static_cast<uint64_t>(NumberOf(question.spec, numbers[0]));
    const auto rank = static_cast<uint64_t>(NumberOf(question.spec, numbers[1]));
    LayerShape shape;
    const uint64_t width = shape.width = question.inputs[0].shape.width, inner = experts * rank;
    shape.learns = true;
    for (uint32_t level = 0; level < question.spec.units; ++level) {
      const std::string number = std::to_string(level);
      shape.tensors.push_back({"down" + number, {width, inner}, GlorotInit(width, rank)});
      // The matrices are stacked.
      shape.tensors.push_back({"core" + number, {inner, rank}, GlorotInit(rank, rank)});
      shape.tensors.push_back({"up" + number, {inner, width}, GlorotInit(rank, width)});
      shape.tensors.push_back({"bias" + number, {width}, {InitKind::kZeros, 0.0f}});
      shape.tensors.push_back({"gate" + number, {width, experts}, GlorotInit(width, experts)});
    }
    return shape;
  };
  return record;
}

}  // namespace hdps
