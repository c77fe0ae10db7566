// The settings of a layer.
#include "common/job/text/job_sections.h"
#include "common/job/text/setting_table.h"

namespace hdps {

constexpr auto WordsOf(LayerKind) {
  using enum LayerKind;
  return EnumWords(kEmbedding, "embedding", kNumeric, "numeric", kConcat, "concat", kSum, "sum",
                   kDense, "dense", kBias, "bias", kFm, "fm", kCross, "cross", kDot, "dot");
}
constexpr auto WordsOf(Activation) {
  using enum Activation;
  return EnumWords(kNone, "none", kRelu, "relu");
}
constexpr auto WordsOf(Pooling) {
  using enum Pooling;
  return EnumWords(kSum, "sum", kMean, "mean");
}
constexpr auto WordsOf(Combine) {
  using enum Combine;
  return EnumWords(kConcat, "concat", kSum, "sum");
}

Section LayerSection() {
  using enum Note;
  constexpr auto kKind = &LayerSpec::kind;
  SettingTable<LayerSpec> layer("layer", "model.layers[]");
  layer.Add("name", &LayerSpec::name, "", kRequired);
  layer.Add("kind", kKind, "");
  layer.Add("inputs", &LayerSpec::inputs,
            "Names of layers before this one. fm: an embedding. dot: an embedding, and a dense "
            "vector as wide as one row.",
            Where(kKind, {LayerKind::kConcat, LayerKind::kSum, LayerKind::kDense, LayerKind::kBias,
                          LayerKind::kFm, LayerKind::kCross, LayerKind::kDot}));
  layer.Add("table", &LayerSpec::table, "", Where(kKind, {LayerKind::kEmbedding}));
  layer.Add("features", &LayerSpec::features, "Empty: all sparse features.",
            Where(kKind, {LayerKind::kEmbedding}));
  layer.Add("pooling", &LayerSpec::pooling, "Of the keys of one feature.",
            Where(kKind, {LayerKind::kEmbedding}));
  layer.Add("combine", &LayerSpec::combine, "Of the features.",
            Where(kKind, {LayerKind::kEmbedding}));
  layer.Add("units", &LayerSpec::units, "Has to be given. dense: outputs. cross: number of layers.",
            Range{1, 65536}, kNoDefault, Where(kKind, {LayerKind::kDense, LayerKind::kCross}));
  layer.Add("activation", &LayerSpec::activation, "", Where(kKind, {LayerKind::kDense}));
  return layer.Done();
}

}  // namespace hdps
