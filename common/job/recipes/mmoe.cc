// MMoE: experts that all tasks share, mixed by a gate of each task.
#include <algorithm>

#include "common/job/activation.h"
#include "common/job/recipes/graph_builder.h"
#include "common/job/spec/model_spec.h"

namespace hdps {

namespace {

void Build(GraphBuilder& g) {
  const auto experts = g.Own<uint32_t>("experts"), units = g.Own<uint32_t>("expert_units");
  const std::string input = g.WithNumeric(g.Embedding());
  // All experts are computed in one product.
  g.Dense("experts", input, experts * units, Activation::kRelu);
  std::vector<std::string> logits;
  for (size_t t = 0; t < std::max<size_t>(1, g.model().tasks.size()); ++t) {
    const std::string task = "task" + std::to_string(t + 1);
    const std::string gate = g.Dense(task + "_gate", input, experts, Activation::kNone);
    const std::string mixed =
        g.Add(GraphBuilder::Layer(task + "_mixture", "mixture", {"experts", gate}));
    const std::string tower = g.Hidden(task + "_deep", mixed, g.recipe().hidden);
    logits.push_back(g.Dense(task + "_logit", tower, 1, Activation::kNone));
  }
  if (logits.size() > 1) g.Concat("logits", logits);
}

}  // namespace

RecipeRecord MmoeRecipe() {
  RecipeRecord record;
  record.word = "mmoe";
  record.gives =
      "`experts` hidden layers over embeddings and numeric columns; each task adds them up by the "
      "softmax of its own gate, and has an MLP (`hidden`) above";
  record.paper = "Ma et al. 2018, MMoE";
  record.fields = {.embedding = true, .dims = true, .hidden = true};
  record.settings = {{"experts", 4u, 1, 256, {}, "Experts that all tasks share."},
                     {"expert_units", 32u, 1, 4096, {}, "Width of one expert."}};
  record.build = Build;
  return record;
}

}  // namespace hdps
