// DCN-v2 in its parallel form: cross layers beside an MLP.
#include "common/job/recipes/graph_builder.h"
#include "common/job/spec/layer_spec.h"

namespace hdps {

namespace {

void Build(GraphBuilder& g) {
  const std::string input = g.WithNumeric(g.Embedding());
  LayerSpec cross = GraphBuilder::Layer("cross", "cross", {input});
  cross.units = g.Own<uint32_t>("cross_layers");
  std::string joined = g.Add(cross);
  if (!g.recipe().hidden.empty()) {
    joined = g.Concat("joined", {joined, g.Hidden("deep", input, g.recipe().hidden)});
  }
  g.Logits("logit", joined);
}

}  // namespace

RecipeRecord DcnV2Recipe() {
  RecipeRecord record;
  record.word = "dcn_v2";
  record.gives =
      "cross layers, each a product with the input, beside an MLP over embeddings and numbers; one "
      "linear layer over both";
  record.paper = "Wang et al. 2021";
  record.fields = {.embedding = true, .dims = true, .hidden = true};
  record.settings = {{"cross_layers", 3u, 1, 64, {}, "Layers of the cross network."},
                     ClassesSetting()};
  record.build = Build;
  return record;
}

}  // namespace hdps
