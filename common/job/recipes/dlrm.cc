// DLRM: a bottom MLP for the numeric columns, dot products of all pairs, and a top MLP.
#include "common/job/activation.h"
#include "common/job/recipes/graph_builder.h"
#include "common/job/spec/layer_spec.h"

namespace hdps {

namespace {

void Build(GraphBuilder& g) {
  const std::string embedding = g.Embedding();
  std::string joined;
  if (g.numeric()) {
    const std::string bottom = g.Dense(
        "bottom", g.Hidden("bottom", g.Numeric(), g.Own<std::vector<uint32_t>>("bottom_hidden")),
        g.recipe().embedding_dim, Activation::kRelu);
    const std::string dot = g.Add(GraphBuilder::Layer("dot", "dot", {embedding, bottom}));
    joined = g.Concat("joined", {bottom, dot});
  } else {
    joined = g.Add(GraphBuilder::Layer("dot", "dot", {embedding}));
  }
  g.Logits("logit", g.Hidden("top", joined, g.recipe().hidden));
}

}  // namespace

RecipeRecord DlrmRecipe() {
  RecipeRecord record;
  record.word = "dlrm";
  record.gives =
      "numbers through a bottom MLP, dot products of all pairs of it and the embeddings, and a top "
      "MLP over both";
  record.paper = "Naumov et al. 2019";
  record.fields = {.embedding = true, .hidden = true};
  record.settings = {{"bottom_hidden",
                      std::vector<uint32_t>{64},
                      1,
                      65536,
                      {},
                      "Hidden layers between the numbers and the dot products."},
                     ClassesSetting()};
  record.build = Build;
  return record;
}

}  // namespace hdps
