// ESMM: the probability of a purchase as that of a click times that of a purchase after the click.
#include "common/job/activation.h"
#include "common/job/recipes/graph_builder.h"
#include "common/job/spec/model_spec.h"

namespace hdps {

namespace {

void Build(GraphBuilder& g) {
  if (g.model().tasks.size() != 2) {
    return g.Refuse("tasks", "esmm learns two: first the click, then the click that converts");
  }
  const std::string input = g.WithNumeric(g.Embedding());
  for (const std::string task : {"click", "conversion"}) {
    g.Dense(task + "_logit", g.Hidden(task, input, g.recipe().hidden), 1, Activation::kNone);
  }
  g.Add(GraphBuilder::Layer("both", "joint", {"click_logit", "conversion_logit"}));
  g.Concat("logits", {"click_logit", "both"});
}

}  // namespace

RecipeRecord EsmmRecipe() {
  RecipeRecord record;
  record.word = "esmm";
  record.gives =
      "an MLP for the click and one for the conversion after a click, over the same embeddings "
      "(and "
      "the numeric columns); the second logit is that of the product of both probabilities";
  record.paper = "Ma et al. 2018, ESMM";
  record.fields = {.embedding = true, .dims = true, .hidden = true};
  record.build = Build;
  return record;
}

}  // namespace hdps
