// A factorization machine.
#include "common/job/recipes/graph_builder.h"
#include "common/job/spec/layer_spec.h"

namespace hdps {

namespace {

void Build(GraphBuilder& g) {
  const std::string wide = g.Wide();
  const std::string pairs = g.Add(GraphBuilder::Layer("fm", "fm", {g.Embedding()}));
  g.Sum("logit", {wide, pairs});
}

}  // namespace

RecipeRecord FmRecipe() {
  RecipeRecord record;
  record.word = "fm";
  record.gives = "a weight a key and the dot products of all pairs of features, added";
  record.paper = "Rendle 2010";
  record.fields = {.embedding = true, .wide = true, .linear = true};
  record.build = Build;
  return record;
}

}  // namespace hdps
