// BST: a transformer over a history with the target item behind it.
#include "common/job/activation.h"
#include "common/job/recipes/graph_builder.h"
#include "common/job/spec/layer_spec.h"

namespace hdps {

namespace {

void Build(GraphBuilder& g) {
  if (!g.AddHistory()) return;
  LayerSpec block;
  block.activation = Activation::kLeakyRelu;
  block.words["norm"] = "after";
  // The target is the last vector.
  const std::string interest = g.Transformer({"history", "target"}, block);
  if (interest.empty()) return;
  std::vector<std::string> parts = {interest};
  for (const std::string& other : g.BesideHistory()) parts.push_back(other);
  const std::string deep =
      g.Hidden("deep", parts.size() == 1 ? interest : g.Concat("all", parts), g.recipe().hidden);
  g.Logits("logit", deep);
}

}  // namespace

RecipeRecord BstRecipe() {
  RecipeRecord record;
  record.word = "bst";
  record.gives =
      "what a transformer over a history and the target behind it makes of the target; beside the "
      "other features and the numeric columns, below an MLP";
  record.paper = "Chen et al. 2019";
  record.fields = {.embedding = true, .dims = true, .hidden = true};
  record.settings = HistorySettings();
  for (const RecipeSetting& setting : TransformerSettings()) record.settings.push_back(setting);
  record.settings.push_back(ClassesSetting());
  record.build = Build;
  return record;
}

}  // namespace hdps
