// A neural factorization machine: an MLP over the pooled products of all pairs.
#include "common/job/activation.h"
#include "common/job/recipes/graph_builder.h"
#include "common/job/spec/layer_spec.h"

namespace hdps {

namespace {

void Build(GraphBuilder& g) {
  const std::string wide = g.Wide();
  const std::string pairs = g.Add(GraphBuilder::Layer("pairs", "pair_sum", {g.Embedding()}));
  const std::string deep = g.Hidden("deep", g.WithNumeric(pairs), g.recipe().hidden);
  g.Sum("logit", {wide, g.Dense("deep_logit", deep, 1, Activation::kNone)});
}

}  // namespace

RecipeRecord NfmRecipe() {
  RecipeRecord record;
  record.word = "nfm";
  record.gives =
      "a weight a key, plus an MLP over the elementwise products of all pairs of features, added "
      "up, and the numbers";
  record.paper = "He and Chua 2017";
  record.fields = {.embedding = true, .wide = true, .hidden = true};
  record.build = Build;
  return record;
}

}  // namespace hdps
