// An MLP over the numeric columns alone.
#include "common/job/recipes/graph_builder.h"

namespace hdps {

namespace {

void Build(GraphBuilder& g) {
  const uint32_t classes = g.Own<uint32_t>("classes");
  if (classes > 1) g.SetLoss(LossKind::kSoftmax);
  g.Dense("logit", g.Hidden("hidden", g.Numeric(), g.recipe().hidden), classes, Activation::kNone);
}

}  // namespace

RecipeRecord MlpRecipe() {
  RecipeRecord record;
  record.word = "mlp";
  record.gives = "an MLP over the numeric columns";
  record.fields = {.hidden = true};
  record.settings = {{"classes", 1u, 1, 65536, {}, "More than 1: softmax over as many classes."}};
  record.build = Build;
  return record;
}

}  // namespace hdps
