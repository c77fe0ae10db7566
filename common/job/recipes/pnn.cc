// A product-based network: an MLP over embeddings and products of pairs of them.
#include "common/job/recipes/graph_builder.h"
#include "common/job/spec/layer_spec.h"

namespace hdps {

namespace {

void Build(GraphBuilder& g) {
  const std::string embedding = g.Embedding(), products = g.Own<std::string>("products");
  std::vector<std::string> parts = {embedding};
  if (products != "outer") parts.push_back(g.Add(GraphBuilder::Layer("inner", "dot", {embedding})));
  if (products != "inner") {
    parts.push_back(g.Add(GraphBuilder::Layer("outer", "outer", {embedding})));
  }
  if (g.numeric()) parts.push_back(g.Numeric());
  const std::string input = g.Concat("deep_input", parts);
  g.Logits("logit", g.Hidden("deep", input, g.recipe().hidden));
}

}  // namespace

RecipeRecord PnnRecipe() {
  RecipeRecord record;
  record.word = "pnn";
  record.gives =
      "an MLP over the embeddings, products of all pairs of them (dot products, outer products "
      "added up, or both), and numbers";
  record.paper = "Qu et al. 2016";
  record.fields = {.embedding = true, .hidden = true};
  record.settings = {{"products",
                      "inner",
                      0,
                      0,
                      {"inner", "outer", "both"},
                      "inner: one dot product a pair. outer: the sum of the outer products of all "
                      "pairs, embedding_dim squared columns."},
                     ClassesSetting()};
  record.build = Build;
  return record;
}

}  // namespace hdps
