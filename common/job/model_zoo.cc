// The recipes: each model as layers over its tables.
#include "common/job/model_zoo.h"

#include <glog/logging.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace hdps {

OptimizerSpec ModelRecipe::WideOptimizer() {
  OptimizerSpec ftrl;
  ftrl.kind = OptimizerKind::kFtrl;
  ftrl.learning_rate = 0.05f;
  ftrl.l1 = ftrl.l2 = 1e-8f;
  // Gradients are means over a batch, so a key's squares are of about 1e-6; an accumulator that
  // begins far above them would all but freeze its weight.
  ftrl.initial_accumulator = 1e-6f;
  return ftrl;
}

OptimizerSpec ModelRecipe::DeepOptimizer() {
  OptimizerSpec lazy_adam;
  lazy_adam.kind = OptimizerKind::kLazyAdam;
  lazy_adam.learning_rate = 3.5e-4f;
  return lazy_adam;
}

OptimizerSpec ModelRecipe::DenseOptimizer() {
  OptimizerSpec adam;
  adam.kind = OptimizerKind::kAdam;
  adam.learning_rate = 3.5e-4f;
  return adam;
}

namespace {

// Adds layers one after the other; each function gives the name of the layer it added.
//
// Invariant: every layer's inputs are before it.
class GraphBuilder {
 public:
  GraphBuilder(const ModelRecipe& recipe, const FeatureNames& features)
      : recipe_(recipe), numeric_(recipe.numeric && !features.numeric.empty()) {}

  bool numeric() const { return numeric_; }

  // [n, 1]: one weight a key, one a numeric column, and a bias.
  std::string Wide() {
    graph_.tables.push_back(
        {"wide", 1, recipe_.wide_optimizer, recipe_.wide_init, false, ShardBy::kKey});
    LayerSpec keys = Layer("wide", "embedding", {});
    keys.table = "wide";
    keys.features = recipe_.wide_features;
    keys.combine = Combine::kSum;
    std::vector<std::string> parts = {Add(keys)};
    if (numeric_) parts.push_back(Dense("wide_numeric", Numeric(), 1, Activation::kNone));
    return Add(Layer("wide_bias", "bias", {Sum("wide_sum", parts)}));
  }

  // [n, F * dim]
  std::string Embedding() {
    graph_.tables.push_back({"deep", recipe_.embedding_dim, recipe_.deep_optimizer,
                             recipe_.embedding_init, false, ShardBy::kKey});
    LayerSpec embedding = Layer("embedding", "embedding", {});
    embedding.table = "deep";
    embedding.features = recipe_.deep_features;
    return Add(embedding);
  }

  // [n, numeric columns]; one layer, however often it is asked for.
  std::string Numeric() {
    if (!numeric_added_) Add(Layer("numeric", "numeric", {}));
    numeric_added_ = true;
    return "numeric";
  }

  std::string WithNumeric(const std::string& input) {
    if (!numeric_) return input;
    return Add(Layer("deep_input", "concat", {input, Numeric()}));
  }

  // Hidden layers "NAME1", "NAME2", ... with relu.
  std::string Hidden(const std::string& name, std::string input,
                     const std::vector<uint32_t>& units) {
    for (size_t i = 0; i < units.size(); ++i) {
      input = Dense(name + std::to_string(i + 1), input, units[i], Activation::kRelu);
    }
    return input;
  }

  std::string Dense(const std::string& name, const std::string& input, uint32_t units,
                    Activation activation) {
    LayerSpec layer = Layer(name, "dense", {input});
    layer.units = units;
    layer.activation = activation;
    return Add(layer);
  }

  std::string Cross(const std::string& input) {
    LayerSpec layer = Layer("cross", "cross", {input});
    layer.units = recipe_.cross_layers;
    return Add(layer);
  }

  std::string Sum(const std::string& name, const std::vector<std::string>& parts) {
    return parts.size() == 1 ? parts[0] : Add(Layer(name, "sum", parts));
  }

  std::string Add(const LayerSpec& layer) {
    graph_.layers.push_back(layer);
    return layer.name;
  }

  static LayerSpec Layer(const std::string& name, const std::string& kind,
                         std::vector<std::string> inputs) {
    LayerSpec layer;
    layer.name = name;
    layer.kind = kind;
    layer.inputs = std::move(inputs);
    return layer;
  }

  ModelGraph graph() && { return std::move(graph_); }

 private:
  const ModelRecipe& recipe_;
  const bool numeric_;
  bool numeric_added_ = false;
  ModelGraph graph_;
};

void WideDeep(const ModelRecipe& recipe, GraphBuilder& g) {
  const std::string wide = g.Wide();
  const std::string deep = g.Hidden("deep", g.WithNumeric(g.Embedding()), recipe.hidden);
  g.Sum("logit", {wide, g.Dense("deep_logit", deep, 1, Activation::kNone)});
}

// Guo et al. 2017: first order, pairs, and an MLP over the same embedding.
void DeepFm(const ModelRecipe& recipe, GraphBuilder& g) {
  const std::string wide = g.Wide();
  const std::string embedding = g.Embedding();
  const std::string pairs = g.Add(GraphBuilder::Layer("fm", "fm", {embedding}));
  const std::string deep = g.Hidden("deep", g.WithNumeric(embedding), recipe.hidden);
  g.Sum("logit", {wide, pairs, g.Dense("deep_logit", deep, 1, Activation::kNone)});
}

// Wang et al. 2021, the parallel form: cross layers beside an MLP.
void DcnV2(const ModelRecipe& recipe, GraphBuilder& g) {
  const std::string input = g.WithNumeric(g.Embedding());
  std::string joined = g.Cross(input);
  if (!recipe.hidden.empty()) {
    const std::string deep = g.Hidden("deep", input, recipe.hidden);
    joined = g.Add(GraphBuilder::Layer("joined", "concat", {joined, deep}));
  }
  g.Dense("logit", joined, 1, Activation::kNone);
}

// Naumov et al. 2019: numbers through a bottom MLP, dot products of all pairs, a top MLP.
void Dlrm(const ModelRecipe& recipe, GraphBuilder& g) {
  const std::string embedding = g.Embedding();
  std::string joined;
  if (g.numeric()) {
    const std::string bottom =
        g.Dense("bottom", g.Hidden("bottom", g.Numeric(), recipe.bottom_hidden),
                recipe.embedding_dim, Activation::kRelu);
    const std::string dot = g.Add(GraphBuilder::Layer("dot", "dot", {embedding, bottom}));
    joined = g.Add(GraphBuilder::Layer("joined", "concat", {bottom, dot}));
  } else {
    joined = g.Add(GraphBuilder::Layer("dot", "dot", {embedding}));
  }
  g.Dense("logit", g.Hidden("top", joined, recipe.hidden), 1, Activation::kNone);
}

void Logistic(const ModelRecipe&, GraphBuilder& g) { g.Wide(); }

void Mlp(const ModelRecipe& recipe, GraphBuilder& g) {
  g.Dense("logit", g.Hidden("hidden", g.Numeric(), recipe.hidden), recipe.classes,
          Activation::kNone);
}

struct RecipeType {
  std::string_view name;
  void (*build)(const ModelRecipe& recipe, GraphBuilder& g);
};
constexpr RecipeType kRecipeTypes[] = {{"wide_deep", WideDeep}, {"deepfm", DeepFm},
                                       {"dcn_v2", DcnV2},       {"dlrm", Dlrm},
                                       {"logistic", Logistic},  {"mlp", Mlp}};

}  // namespace

std::vector<std::string> RecipeTypes() {
  std::vector<std::string> names;
  for (const RecipeType& type : kRecipeTypes) names.emplace_back(type.name);
  return names;
}

Result<ModelGraph> BuildModel(const std::string& type, const ModelRecipe& recipe,
                              const FeatureNames& features) {
  const bool mlp = type == "mlp";
  if (mlp && features.numeric.empty()) {
    return Status(Code::kInvalidArgument,
                  "mlp reads numeric columns, and the data has none; choose another type");
  }
  if (!mlp && features.sparse.empty()) {
    return Status(Code::kInvalidArgument,
                  type + " embeds categorical columns or features, and the data has none; use mlp");
  }
  const auto* const found = std::ranges::find(kRecipeTypes, type, &RecipeType::name);
  CHECK(found != std::end(kRecipeTypes)) << type;
  GraphBuilder g(recipe, features);
  found->build(recipe, g);
  return std::move(g).graph();
}

TableSpec DenseTable(const OptimizerSpec& optimizer) {
  const bool whole_tensors = RecordOf(optimizer).whole_tensors;
  return {"dense",   kDenseChunkFloats,
          optimizer, {InitKind::kZeros, 0},
          true,      whole_tensors ? ShardBy::kGroup : ShardBy::kKey};
}

}  // namespace hdps
