// DeepFM: first order, pairs, and an MLP over the same embedding.
#include "common/job/activation.h"
#include "common/job/recipes/graph_builder.h"
#include "common/job/spec/layer_spec.h"

namespace hdps {

namespace {

void Build(GraphBuilder& g) {
  const std::string wide = g.Wide();
  const std::string embedding = g.Embedding();
  const std::string pairs = g.Add(GraphBuilder::Layer("fm", "fm", {embedding}));
  const std::string deep = g.Hidden("deep", g.WithNumeric(embedding), g.recipe().hidden);
  g.Sum("logit", {wide, pairs, g.Dense("deep_logit", deep, 1, Activation::kNone)});
}

}  // namespace

RecipeRecord DeepFmRecipe() {
  RecipeRecord record;
  record.word = "deepfm";
  record.gives =
      "a weight a key, the dot products of all pairs of features, and an MLP over the same "
      "embeddings, added";
  record.paper = "Guo et al. 2017";
  record.fields = {.embedding = true, .wide = true, .hidden = true};
  record.build = Build;
  return record;
}

}  // namespace hdps
