// Two towers: a vector of the user and one of the item, compared by their cosine.
#include "common/job/activation.h"
#include "common/job/recipes/graph_builder.h"
#include "common/job/spec/loss_kind.h"
#include "common/job/spec/model_spec.h"

namespace hdps {

namespace {

// Returns a normalized vector of the last width; the last layer has no relu.
std::string Tower(GraphBuilder& g, const std::string& name, std::string input, double temperature) {
  std::vector<uint32_t> hidden = g.recipe().hidden;
  const uint32_t dim = hidden.back();
  hidden.pop_back();
  input = g.Dense(name + "_vector", g.Hidden(name, input, hidden), dim, Activation::kNone);
  LayerSpec normalize = GraphBuilder::Layer(name, "normalize", {input});
  normalize.numbers["temperature"] = temperature;
  return g.Add(normalize);
}

void Build(GraphBuilder& g) {
  const auto& user_features = g.Own<std::vector<std::string>>("user_features");
  const auto& item_features = g.Own<std::vector<std::string>>("item_features");
  if (!g.Knows("user_features", user_features) || !g.Knows("item_features", item_features)) return;
  if (g.recipe().hidden.empty()) {
    return g.Refuse("hidden", "needs at least the width of both vectors");
  }
  std::string user = g.Rows("user_rows", user_features);
  if (g.numeric()) user = g.Concat("user_input", {user, g.Numeric()});
  const std::string item = g.Rows("item_rows", item_features);
  user = Tower(g, "user", user, g.Own<double>("temperature"));
  const std::vector<std::string> both = {user, Tower(g, "item", item, 1)};
  if (g.model().loss == LossKind::kSampledSoftmax) {
    g.Add(GraphBuilder::Layer("towers", "towers", both));
  } else {
    const std::string cosine = g.Add(GraphBuilder::Layer("cosine", "inner", both));
    g.Add(GraphBuilder::Layer("logit", "bias", {cosine}));
  }
}

}  // namespace

RecipeRecord TwoTowerRecipe() {
  RecipeRecord record;
  record.word = "two_tower";
  record.gives =
      "an MLP over the user's features (and the numeric columns) and one over the item's, each "
      "ending in a vector of length 1; the logit is their cosine over `temperature`, plus a bias "
      "(none under sampled_softmax)";
  record.paper = "Huang et al. 2013; Yi et al. 2019";
  record.fields = {.embedding = true, .dims = true, .hidden = true};
  record.settings = {
      {"user_features", std::vector<std::string>(), 0, 0, {}, "Features of the user's tower."},
      {"item_features", std::vector<std::string>(), 0, 0, {}, "Features of the item's tower."},
      {"temperature", 0.1, 1e-4, 1e4, {}, "What the cosine is divided by."}};
  record.build = Build;
  return record;
}

}  // namespace hdps
