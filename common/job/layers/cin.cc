// The compressed interaction network of xDeepFM.
#include "common/job/layers/layer_record.h"
#include "common/job/spec/layer_spec.h"

namespace hdps {

LayerRecord CinRecord() {
  LayerRecord record;
  record.kind = "cin";
  record.gives =
      "one column a map: the products of each map of the level before with each vector, weighted "
      "and "
      "added, level by level; the maps added over their components (CIN, Lian et al. 2018, eq. "
      "6-8)";
  record.inputs_doc = "an embedding";
  record.units_doc = "maps of a level";
  record.fields.units = true;
  record.numbers = {{"levels", 1, 16, 2, "Levels, each of one more factor.", true}};
  record.words = {
      {"split",
       {"half", "none"},
       "half: of the maps of a level that is not the last, the first half goes into the "
       "next level and the second half comes out (as the authors' program has it). none: "
       "all maps do both."}};
  record.measure = [levels_of = record.numbers[0], split_of = record.words[0]](
                       const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    const LayerQuestion::Input& input = question.inputs[0];
    const uint64_t dim = input.shape.vector_dim, maps = question.spec.units;
    if (dim == 0) return NoVectors(input);
    const auto levels = static_cast<uint64_t>(NumberOf(question.spec, levels_of));
    const bool half = WordOf(question.spec, split_of) == "half";
    if (half && levels > 1 && maps % 2 != 0) {
      return LayerProblem{
          "units",
          std::to_string(maps) + " maps cannot be halved; take an even number, or split none"};
    }
    const uint64_t vectors = input.shape.width / dim, onward = half ? maps / 2 : maps;
    LayerShape shape;
    shape.width = (levels - 1) * (half ? maps - onward : maps) + maps;
    shape.learns = true;
    for (uint64_t level = 0; level < levels; ++level) {
      const uint64_t products = (level == 0 ? vectors : onward) * vectors;
      LayerShape::Tensor weight = {
          "weight" + std::to_string(level), {products, maps}, GlorotInit(products, maps)};
      weight.uses = dim;
      shape.tensors.push_back(weight);
    }
    return shape;
  };
  return record;
}

}  // namespace hdps
