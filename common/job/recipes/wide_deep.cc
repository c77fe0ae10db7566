// Wide & Deep: a linear model beside an MLP over embeddings.
#include "common/job/recipes/graph_builder.h"

namespace hdps {

namespace {

void Build(GraphBuilder& g) {
  const std::string wide = g.Wide();
  const std::string deep = g.Hidden("deep", g.WithNumeric(g.Embedding()), g.recipe().hidden);
  g.Sum("logit", {wide, g.Dense("deep_logit", deep, 1, Activation::kNone)});
}

}  // namespace

RecipeRecord WideDeepRecipe() {
  RecipeRecord record;
  record.word = "wide_deep";
  record.gives = "a weight a key (the wide part), plus an MLP over embeddings and numbers";
  record.paper = "Cheng et al. 2016";
  record.fields = {.embedding = true, .dims = true, .wide = true, .hidden = true};
  record.build = Build;
  return record;
}

}  // namespace hdps
