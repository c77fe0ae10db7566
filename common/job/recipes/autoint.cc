// AutoInt: self-attention over the vectors of the features, beside an MLP.
#include "common/job/activation.h"
#include "common/job/recipes/graph_builder.h"
#include "common/job/spec/layer_spec.h"

namespace hdps {

namespace {

void Build(GraphBuilder& g) {
  const std::string embedding = g.Embedding();
  std::string attended = embedding;
  for (uint32_t level = 1; level <= g.Own<uint32_t>("attention_layers"); ++level) {
    LayerSpec attention =
        GraphBuilder::Layer("attention" + std::to_string(level), "attention", {attended});
    attention.units = g.Own<uint32_t>("attention_units") * g.Own<uint32_t>("attention_heads");
    attention.numbers["heads"] = g.Own<uint32_t>("attention_heads");
    attended = g.Add(attention);
  }
  std::vector<std::string> parts = {g.Dense("attention_logit", attended, 1, Activation::kNone)};
  if (!g.recipe().hidden.empty()) {
    const std::string deep = g.Hidden("deep", g.WithNumeric(embedding), g.recipe().hidden);
    parts.push_back(g.Dense("deep_logit", deep, 1, Activation::kNone));
  }
  g.Sum("logit", parts);
}

}  // namespace

RecipeRecord AutoIntRecipe() {
  RecipeRecord record;
  record.word = "autoint";
  record.gives =
      "multi-head self-attention over the embeddings, layer above layer, and an MLP over the same "
      "embeddings (and the numeric columns), added; `hidden: []` leaves the MLP out";
  record.paper = "Song et al. 2019, AutoInt+";
  record.fields = {.embedding = true, .hidden = true};
  record.settings = {{"attention_layers", 3u, 1, 16, {}, "Self-attentions above each other."},
                     {"attention_units", 16u, 1, 4096, {}, "Columns of one head."},
                     {"attention_heads", 2u, 1, 64, {}, "Heads of each self-attention."}};
  record.build = Build;
  return record;
}

}  // namespace hdps
