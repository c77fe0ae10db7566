// What a recipe is: the word for a known model, the settings that count for it, and how it becomes
// a graph of layers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/status.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/spec/init_spec.h"

namespace hdps {

struct FeatureNames;
struct ModelGraph;  // recipe_graph.h
struct ModelSpec;

// What a setting of a recipe may hold: a list of widths is {64, 32}, one of texts names features.
using RecipeValue = std::variant<bool, uint32_t, double, std::string, std::vector<uint32_t>,
                                 std::vector<std::string>>;

// A setting that only some recipes have, "cross_layers" of dcn_v2. One name means the same in all
// of them.
struct RecipeSetting {
  std::string name;
  RecipeValue standard;            // What holds where nothing was set; it also says the type.
  double min = 0, max = 0;         // Of numbers and widths, both included.
  std::vector<std::string> words;  // Not empty: the text is one of these.
  std::string doc;
};

// "classes", of recipes that can give a logit to each of several classes.
RecipeSetting ClassesSetting();

// The short form of a model: what a recipe makes tables and layers from.
struct ModelRecipe {
  uint32_t embedding_dim = 16;
  // Features with vectors of another dim; those of one dim have a table together.
  std::map<std::string, uint32_t> feature_dims;
  std::vector<uint32_t> hidden = {64, 32};
  bool batch_norm = false;                 // Of hidden layers, before their relu,
  std::string batch_norm_over = "part";    // over: as the layer's own setting.
  double dropout = 0;                      // Of hidden layers, behind it.
  double embedding_dropout = 0;            // Of the rows of "deep".
  std::vector<std::string> wide_features;  // Empty: all sparse features.
  std::vector<std::string> deep_features;
  bool numeric = true;  // The numeric columns take part (if there are any).
  OptimizerSpec wide_optimizer = WideOptimizer();
  OptimizerSpec deep_optimizer = DeepOptimizer();
  InitSpec wide_init = {InitKind::kZeros, 0};
  InitSpec embedding_init = {InitKind::kNormal, 0.01f};
  std::map<std::string, RecipeValue> own;  // Settings of some recipes alone: see RecipeSetting.

  // FTRL on the wide part, lazy Adam on the deep table, Adam on the dense layers, as in the
  // published Wide&Deep recipes, with rates that learn something of hundreds of rows too.
  static OptimizerSpec WideOptimizer();
  static OptimizerSpec DeepOptimizer();
  static OptimizerSpec DenseOptimizer();
  // FTRL on the dense weights of a recipe that is linear in them, its bias and those of numeric
  // columns: faster than on keys, which would else have to learn the base rate for the bias.
  static OptimizerSpec LinearOptimizer();
};

// The value that the setting has there; where nothing was set, the default.
const RecipeValue& ValueOf(const ModelRecipe& recipe, const RecipeSetting& setting);

// What is wrong with one setting of a recipe.
struct RecipeProblem {
  std::string key;  // Empty: nothing is.
  std::string problem;
};

class GraphBuilder;  // graph_builder.h

// Which of the settings that many recipes share count for one.
struct RecipeFields {
  bool embedding = false;  // embedding_dim, deep_features, deep_optimizer, embedding_init
  bool dims = false;       // feature_dims: vectors of features are put side by side, nothing else.
  bool wide = false;       // wide_features, wide_optimizer, wide_init
  bool hidden = false;
};

// One recipe. The job file's settings, their documentation and the checks read it.
struct RecipeRecord {
  std::string word;   // In job files: model.type.
  std::string gives;  // For docs: what is computed, in one sentence.
  std::string paper;  // For docs: its source; empty: none.
  RecipeFields fields;
  std::vector<RecipeSetting> settings;
  // Adds tables and layers; the last layer gives the logits.
  void (*build)(GraphBuilder& g) = nullptr;

  // Whether it has rows of any table; one that has none computes on numeric columns.
  bool sparse() const { return fields.embedding || fields.wide; }
  const RecipeSetting* Find(std::string_view setting) const;  // Null: it has none of that name.
};

// The recipes of recipe_list.def, in its order.
const std::vector<RecipeRecord>& Recipes();

// The graph of the recipe `model.type`, which is in Recipes(). kInvalidArgument when the data lacks
// what the recipe needs: sparse features, or numeric columns.
Result<ModelGraph> BuildModel(const ModelSpec& model, const ModelRecipe& recipe,
                              const FeatureNames& features);

// One factory a line of recipe_list.def.
#define HDPS_RECIPE(file, name) RecipeRecord name##Recipe();
#include "common/job/recipes/recipe_list.def"
#undef HDPS_RECIPE

}  // namespace hdps
