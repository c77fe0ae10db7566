// Logistic regression.
#include "common/job/recipes/graph_builder.h"

namespace hdps {

RecipeRecord LogisticRecipe() {
  RecipeRecord record;
  record.word = "logistic";
  record.gives = "a weight a key and a numeric column, and a bias, added";
  record.paper = "McMahan et al. 2013, for its optimizer";
  record.fields = {.wide = true, .linear = true};
  record.settings = {ClassesSetting()};
  record.build = [](GraphBuilder& g) { g.Wide(); };
  return record;
}

}  // namespace hdps
