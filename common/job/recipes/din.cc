// DIN: pools a history with weights from the relation of each item to the target item.
#include "common/job/activation.h"
#include "common/job/recipes/graph_builder.h"
#include "common/job/spec/layer_spec.h"

namespace hdps {

namespace {

void Build(GraphBuilder& g) {
  if (!g.AddHistory()) return;
  LayerSpec din = GraphBuilder::Layer("interest", "din", {"history", "target"});
  din.units = g.Own<uint32_t>("attention_hidden");
  din.activation = Activation::kSigmoid;
  din.words["scores"] = g.Own<std::string>("attention_scores");
  std::vector<std::string> parts = {g.Add(din), "target"};
  for (const std::string& other : g.BesideHistory()) parts.push_back(other);
  const std::string deep = g.Hidden("deep", g.Concat("all", parts), g.recipe().hidden);
  g.Logits("logit", deep);
}

}  // namespace

RecipeRecord DinRecipe() {
  RecipeRecord record;
  record.word = "din";
  record.gives =
      "the items of a history, each times what a small MLP says of it and the target item, added "
      "up; beside the target, the other features and the numeric columns, below an MLP";
  record.paper = "Zhou et al. 2018";
  record.fields = {.embedding = true, .dims = true, .hidden = true};
  record.settings = HistorySettings();
  record.settings.insert(
      record.settings.end(),
      {{"attention_hidden", 36u, 1, 4096, {}, "Width of the MLP that scores an item."},
       {"attention_scores",
        std::string("plain"),
        0,
        0,
        {"plain", "softmax"},
        "Scores as they are, as in the paper, or softmax over the history."},
       ClassesSetting()});
  record.build = Build;
  return record;
}

}  // namespace hdps
