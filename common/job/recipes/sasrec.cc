// SASRec: a transformer over a history, whose last state is compared with the target item.
#include "common/job/activation.h"
#include "common/job/recipes/graph_builder.h"
#include "common/job/spec/layer_spec.h"

namespace hdps {

namespace {

void Build(GraphBuilder& g) {
  if (!g.recipe().deep_features.empty()) {
    return g.Refuse("deep_features",
                    "sasrec has vectors of the history and the target alone; leave it out, or take "
                    "bst");
  }
  if (!g.AddHistory()) return;
  LayerSpec block;
  block.activation = Activation::kRelu;
  block.words["norm"] = "before";
  block.words["sees"] = "earlier";
  const std::string interest = g.Transformer({"history"}, block);
  if (interest.empty()) return;
  const std::string user = g.Add(GraphBuilder::Layer("user", "layer_norm", {interest}));
  const std::string product = g.Add(GraphBuilder::Layer("product", "inner", {user, "target"}));
  g.Sum("logit", {product, g.Wide()});
}

}  // namespace

RecipeRecord SasRecRecipe() {
  RecipeRecord record;
  record.word = "sasrec";
  record.gives =
      "what a transformer makes of the last item of a history, in which each item sees those "
      "before "
      "it; the logit is its product with the target's vector, plus the wide part";
  record.paper = "Kang and McAuley 2018";
  record.fields = {.embedding = true, .wide = true};
  record.settings = HistorySettings();
  for (const RecipeSetting& setting : TransformerSettings()) record.settings.push_back(setting);
  record.build = Build;
  return record;
}

}  // namespace hdps
