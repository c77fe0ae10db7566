// DIN: pools a history with weights from the relation of each item to the target item.
#include <algorithm>

#include "common/job/activation.h"
#include "common/job/job_facts.h"
#include "common/job/recipes/graph_builder.h"
#include "common/job/spec/layer_spec.h"

namespace hdps {

namespace {

void Build(GraphBuilder& g) {
  const auto& history = g.Own<std::string>("history");
  const auto& target = g.Own<std::string>("target");
  if (!g.Knows("history", {history}) || !g.Knows("target", {target})) return;
  if (history == target) return g.Refuse("target", "is the history itself; name another feature");
  for (const std::string& name : {history, target}) {
    if (!g.recipe().feature_dims.contains(name)) continue;
    return g.Refuse("feature_dims", "\"" + name +
                                        "\" is compared with the other of history and target, so "
                                        "both have embedding_dim columns; leave it out");
  }
  g.AddDeepTable();
  LayerSpec sequence = GraphBuilder::Layer("history", "sequence", {});
  sequence.table = "deep";
  sequence.features = {history};
  sequence.numbers["length"] = g.Own<uint32_t>("history_length");
  g.Add(sequence);
  g.Rows("target", {target});
  LayerSpec din = GraphBuilder::Layer("interest", "din", {"history", "target"});
  din.units = g.Own<uint32_t>("attention_hidden");
  din.activation = Activation::kSigmoid;
  din.words["scores"] = g.Own<std::string>("attention_scores");
  std::vector<std::string> parts = {g.Add(din), "target"};
  std::vector<std::string> others;
  for (const std::string& name :
       g.recipe().deep_features.empty() ? g.features().sparse : g.recipe().deep_features) {
    if (name != history && name != target) others.push_back(name);
  }
  if (!others.empty()) parts.push_back(g.Rows("others", others));
  if (g.numeric()) parts.push_back(g.Numeric());
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
  record.settings = {
      {"history", std::string(), 0, 0, {}, "The feature with the keys of a history, in order."},
      {"target", std::string(), 0, 0, {}, "The feature that the history is compared with."},
      {"history_length", 50u, 1, 4096, {}, "Keys of a history; of more, the last ones count."},
      {"attention_hidden", 36u, 1, 4096, {}, "Width of the MLP that scores an item."},
      {"attention_scores",
       std::string("plain"),
       0,
       0,
       {"plain", "softmax"},
       "Scores as they are, as in the paper, or softmax over the history."},
      ClassesSetting()};
  record.build = Build;
  return record;
}

}  // namespace hdps
