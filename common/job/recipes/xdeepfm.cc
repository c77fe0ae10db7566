// xDeepFM: a linear model, a compressed interaction network and an MLP.
#include "common/job/activation.h"
#include "common/job/recipes/graph_builder.h"
#include "common/job/spec/layer_spec.h"

namespace hdps {

namespace {

void Build(GraphBuilder& g) {
  const std::string wide = g.Wide(), embedding = g.Embedding();
  LayerSpec cin = GraphBuilder::Layer("cin", "cin", {embedding});
  cin.units = g.Own<uint32_t>("cin_maps");
  cin.numbers["levels"] = g.Own<uint32_t>("cin_levels");
  cin.words["split"] = g.Own<std::string>("cin_split");
  const std::string maps = g.Dense("cin_logit", g.Add(cin), 1, Activation::kNone);
  const std::string deep = g.Hidden("deep", g.WithNumeric(embedding), g.recipe().hidden);
  g.Sum("logit", {wide, maps, g.Dense("deep_logit", deep, 1, Activation::kNone)});
}

}  // namespace

RecipeRecord XDeepFmRecipe() {
  RecipeRecord record;
  record.word = "xdeepfm";
  record.gives =
      "a weight a key, a compressed interaction network (CIN) of products of two, three, ... "
      "features, and an MLP over the same embeddings and numbers, added";
  record.paper = "Lian et al. 2018";
  record.fields = {.embedding = true, .wide = true, .hidden = true};
  record.settings = {
      {"cin_maps", 32u, 1, 4096, {}, "Feature maps of each level of the CIN."},
      {"cin_levels", 2u, 1, 16, {}, "Levels of the CIN: the first has products of two features."},
      {"cin_split",
       "half",
       0,
       0,
       {"half", "none"},
       "half: of a level's maps one half goes on to the next, the other comes out. none: all do "
       "both, as in the paper, at twice the cost."}};
  record.build = Build;
  return record;
}

}  // namespace hdps
