// An MLP over the numeric columns alone.
#include "common/job/recipes/graph_builder.h"

namespace hdps {

namespace {

void Build(GraphBuilder& g) {
  const std::string numeric = g.Numeric();
  if (g.recipe().hidden.empty()) {
    g.Linear("logit", numeric, g.classes());
  } else {
    g.Logits("logit", g.Hidden("hidden", numeric, g.recipe().hidden));
  }
}

}  // namespace

RecipeRecord MlpRecipe() {
  RecipeRecord record;
  record.word = "mlp";
  record.gives = "an MLP over the numeric columns";
  record.fields = {.hidden = true};
  record.settings = {ClassesSetting()};
  record.build = Build;
  return record;
}

}  // namespace hdps
