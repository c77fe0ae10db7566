// Wide & Deep: a linear model beside an MLP over embeddings.
#include "common/job/recipes/graph_builder.h"

namespace hdps {

namespace {

void Build(GraphBuilder& g) {
  const std::string wide = g.Wide();
  const std::string deep = g.Hidden("deep", g.WithNumeric(g.Embedding()), g.recipe().hidden);
  g.Sum("logit", {wide, g.Logits("deep_logit", deep)});
}

}  // namespace

RecipeRecord WideDeepRecipe() {
  RecipeRecord record;
  record.word = "wide_deep";
  record.gives = "a weight a key (the wide part), plus an MLP over embeddings and numbers";
  record.paper = "Cheng et al. 2016";
  record.fields = {.embedding = true, .dims = true, .wide = true, .hidden = true};
  record.settings = {ClassesSetting()};
  record.build = Build;
  return record;
}

}  // namespace hdps
