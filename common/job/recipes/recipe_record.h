// Describes a recipe: the word for a known model, its settings, and how it becomes a graph of
// layers.
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

// The value of a recipe's setting: a list of widths is {64, 32}, a list of texts names features.
using RecipeValue = std::variant<bool, uint32_t, double, std::string, std::vector<uint32_t>,
                                 std::vector<std::string>>;

// A setting that only some recipes have, "cross_layers" of dcn_v2. One name means the same in all
// of them.
struct RecipeSetting {
  std::string name;
  RecipeValue standard;            // The default, which also determines the type.
  double min = 0, max = 0;         // For numbers and widths; both included.
  std::vector<std::string> words;  // If not empty, the text must be one of these.
  std::string doc;
};

// Returns "classes", a setting of recipes that can have a logit for each of several classes.
RecipeSetting ClassesSetting();
// Returns "history", "target" and "history_length", of recipes that read a history in its order.
std::vector<RecipeSetting> HistorySettings();
// Returns "blocks", "attention_heads" and "feed_forward", of recipes with transformers.
std::vector<RecipeSetting> TransformerSettings();

// The short form of a model, from which a recipe makes tables and layers.
struct ModelRecipe {
  uint32_t embedding_dim = 16;
  // Features with vectors of another dim. Features of one dim share a table.
  std::map<std::string, uint32_t> feature_dims;
  std::vector<uint32_t> hidden = {64, 32};
  bool batch_norm = false;                 // In hidden layers, before their relu.
  std::string batch_norm_over = "part";    // As the setting of the layer.
  double dropout = 0;                      // In hidden layers, after their relu.
  double embedding_dropout = 0;            // On the rows of "deep".
  std::vector<std::string> wide_features;  // Empty for all sparse features.
  std::vector<std::string> deep_features;
  bool numeric = true;  // Use the numeric columns, if there are any.
  OptimizerSpec wide_optimizer = WideOptimizer();
  OptimizerSpec deep_optimizer = DeepOptimizer();
  InitSpec wide_init = {InitKind::kZeros, 0};
  InitSpec embedding_init = {InitKind::kNormal, 0.01f};
  // Settings that only some recipes have; see RecipeSetting.
  std::map<std::string, RecipeValue> own;

  // FTRL on the wide part, lazy Adam on the deep table, Adam on the dense layers, as in the
  // published Wide&Deep recipes. The rates are high enough to learn something from hundreds of rows
  // too.
  static OptimizerSpec WideOptimizer();
  static OptimizerSpec DeepOptimizer();
  static OptimizerSpec DenseOptimizer();
  // FTRL on the dense weights of a recipe that is linear in them: its bias and the weights of
  // numeric columns. It is faster than that of keys, which would otherwise have to learn the base
  // rate in place of the bias.
  static OptimizerSpec LinearOptimizer();
};

// Returns the value of the setting, or the default if it was not set.
const RecipeValue& ValueOf(const ModelRecipe& recipe, const RecipeSetting& setting);

// A wrong setting of a recipe, and what is wrong with it.
struct RecipeProblem {
  std::string key;  // Empty if nothing is wrong.
  std::string problem;
};

class GraphBuilder;  // graph_builder.h

// The shared settings that a recipe uses.
struct RecipeFields {
  bool embedding = false;  // Uses embedding_dim, deep_features, deep_optimizer, embedding_init.
  bool dims = false;  // Uses feature_dims: the recipe only concatenates the vectors of features.
  bool wide = false;  // Uses wide_features, wide_optimizer, wide_init.
  bool hidden = false;
  bool linear = false;  // All dense weights lead directly from features to the logit.
};

// One recipe. The job file's settings, their documentation and the checks read it.
struct RecipeRecord {
  std::string word;   // The word in job files: model.type.
  std::string gives;  // A sentence on what is computed, for docs.
  std::string paper;  // The source, for docs; may be empty.
  RecipeFields fields;
  std::vector<RecipeSetting> settings;
  // Adds tables and layers; the last layer gives the logits.
  void (*build)(GraphBuilder& g) = nullptr;

  // Is false if it has no tables and computes only on numeric columns.
  bool sparse() const { return fields.embedding || fields.wide; }
  // Returns null if it has none of that name.
  const RecipeSetting* Find(std::string_view setting) const;
};

// Returns the recipes of recipe_list.def, in its order.
const std::vector<RecipeRecord>& Recipes();

// Returns the graph of the recipe `model.type`, which must be in Recipes(). Errors:
// kInvalidArgument if the data lacks what the recipe needs: sparse features, or numeric columns.
Result<ModelGraph> BuildModel(const ModelSpec& model, const ModelRecipe& recipe,
                              const FeatureNames& features);

// Declares one factory for each line of recipe_list.def.
#define HDPS_RECIPE(file, name) RecipeRecord name##Recipe();
#include "common/job/recipes/recipe_list.def"
#undef HDPS_RECIPE

}  // namespace hdps
