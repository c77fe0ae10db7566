// FiBiNET: bilinear products of all pairs of embeddings, and of the embeddings weighted by the
// importance of their features.
#include <algorithm>

#include "common/job/activation.h"
#include "common/job/job_facts.h"
#include "common/job/recipes/graph_builder.h"
#include "common/job/spec/layer_spec.h"

namespace hdps {

namespace {

// Multiplies each embedding by a factor that a network with one hidden layer computes from their
// means.
std::string Senet(GraphBuilder& g, const std::string& embedding) {
  const std::vector<std::string>& chosen = g.recipe().deep_features;
  const size_t features = chosen.empty() ? g.features().sparse.size() : chosen.size();
  const auto count = static_cast<uint32_t>(features);
  const uint32_t reduced = std::max(1u, count / g.Own<uint32_t>("senet_reduction"));
  const std::string means = g.Add(GraphBuilder::Layer("senet_means", "vector_means", {embedding}));
  const std::string hidden = g.Dense("senet_hidden", means, reduced, Activation::kRelu);
  const std::string factors = g.Dense("senet_factors", hidden, count, Activation::kRelu);
  return g.Add(GraphBuilder::Layer("senet", "scale_vectors", {embedding, factors}));
}

void Build(GraphBuilder& g) {
  const std::string wide = g.Wide(), embedding = g.Embedding();
  const auto pairs = [&g](const std::string& name, const std::string& input) {
    LayerSpec layer = GraphBuilder::Layer(name, "bilinear", {input});
    layer.words["matrices"] = g.Own<std::string>("bilinear");
    return g.Add(layer);
  };
  std::vector<std::string> parts = {pairs("pairs", embedding),
                                    pairs("senet_pairs", Senet(g, embedding))};
  if (g.numeric()) parts.push_back(g.Numeric());
  const std::string deep = g.Hidden("deep", g.Concat("deep_input", parts), g.recipe().hidden);
  g.Sum("logit", {wide, g.Dense("deep_logit", deep, 1, Activation::kNone)});
}

}  // namespace

RecipeRecord FibinetRecipe() {
  RecipeRecord record;
  record.word = "fibinet";
  record.gives =
      "a weight a key, plus an MLP over bilinear products of all pairs of the embeddings, the same "
      "of the embeddings weighted by a squeeze and excitation network (SENET), and numbers";
  record.paper = "Huang et al. 2019";
  record.fields = {.embedding = true, .wide = true, .hidden = true};
  record.settings = {
      {"bilinear",
       "each",
       0,
       0,
       {"each", "all", "interaction"},
       "Matrices of the products: one for each feature, one for all, or one a pair."},
      {"senet_reduction",
       3u,
       1,
       1000,
       {},
       "The hidden layer of the SENET has so many times fewer units than features."}};
  record.build = Build;
  return record;
}

}  // namespace hdps
