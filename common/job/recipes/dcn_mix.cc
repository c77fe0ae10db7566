// DCN-Mix: cross layers of low rank, each a mixture of experts, beside an MLP.
#include "common/job/recipes/graph_builder.h"
#include "common/job/spec/layer_spec.h"

namespace hdps {

namespace {

void Build(GraphBuilder& g) {
  const std::string input = g.WithNumeric(g.Embedding());
  LayerSpec cross = GraphBuilder::Layer("cross", "cross_mix", {input});
  cross.units = g.Own<uint32_t>("cross_layers");
  cross.numbers["experts"] = g.Own<uint32_t>("cross_experts");
  cross.numbers["rank"] = g.Own<uint32_t>("cross_rank");
  std::string joined = g.Add(cross);
  if (!g.recipe().hidden.empty()) {
    joined = g.Concat("joined", {joined, g.Hidden("deep", input, g.recipe().hidden)});
  }
  g.Logits("logit", joined);
}

}  // namespace

RecipeRecord DcnMixRecipe() {
  RecipeRecord record;
  record.word = "dcn_mix";
  record.gives =
      "as dcn_v2, with cross layers of low rank, each a mixture of experts whose gates the input "
      "chooses";
  record.paper = "Wang et al. 2021, section 3.3";
  record.fields = {.embedding = true, .dims = true, .hidden = true};
  record.settings = {
      {"cross_layers", 3u, 1, 64, {}, "Layers of the cross network."},
      {"cross_experts", 4u, 1, 64, {}, "Experts of each cross layer."},
      {"cross_rank", 32u, 1, 4096, {}, "Columns that an expert projects its input to."},
      ClassesSetting()};
  record.build = Build;
  return record;
}

}  // namespace hdps
