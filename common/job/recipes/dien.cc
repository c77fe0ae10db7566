// DIEN: recurrent units extract interests from a history, and let those evolve that are related to
// the target item.
#include "common/job/recipes/graph_builder.h"
#include "common/job/spec/layer_spec.h"

namespace hdps {

namespace {

void Build(GraphBuilder& g) {
  if (!g.AddHistory()) return;
  LayerSpec unit = GraphBuilder::Layer("interests", "gru", {"history"});
  unit.units = g.recipe().embedding_dim;
  std::string interests = g.Add(unit);
  if (const auto weight = g.Own<double>("auxiliary_weight"); weight > 0) {
    LayerSpec loss = GraphBuilder::Layer("next_item", "next_item", {interests, "history"});
    loss.numbers["loss_weight"] = weight;
    interests = g.Add(loss);
  }
  unit.name = "evolution";
  unit.inputs = {interests, "target"};
  const std::string evolution = g.Add(unit);
  const std::string interest = g.Add(GraphBuilder::Layer("interest", "last_vector", {evolution}));
  std::vector<std::string> parts = {interest, "target"};
  for (const std::string& other : g.BesideHistory()) parts.push_back(other);
  g.Logits("logit", g.Hidden("deep", g.Concat("all", parts), g.recipe().hidden));
}

}  // namespace

RecipeRecord DienRecipe() {
  RecipeRecord record;
  record.word = "dien";
  record.gives =
      "the last state of recurrent units over a history: a GRU, whose states tell the next item, "
      "and "
      "above it one whose updates follow the relation to the target; beside the target, the other "
      "features and the numeric columns, below an MLP";
  record.paper = "Zhou et al. 2019";
  record.fields = {.embedding = true, .dims = true, .hidden = true};
  record.settings = HistorySettings();
  record.settings.push_back({"auxiliary_weight",
                             1.0,
                             0,
                             1e6,
                             {},
                             "Of the loss by which states tell the item that follows; 0: none."});
  record.settings.push_back(ClassesSetting());
  record.build = Build;
  return record;
}

}  // namespace hdps
