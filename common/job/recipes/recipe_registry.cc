// The list of recipes, and what all of them share.
#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/job/job_facts.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/recipes/graph_builder.h"
#include "common/job/recipes/recipe_graph.h"
#include "common/job/spec/model_spec.h"

namespace hdps {

OptimizerSpec ModelRecipe::WideOptimizer() {
  OptimizerSpec ftrl;
  ftrl.record = &RecordOf(OptimizerKind::kFtrl);
  ftrl.learning_rate = 0.05f;
  ftrl.l1 = ftrl.l2 = 1e-8f;
  // Gradients are means over a batch, so the squares of a key's gradients are about 1e-6. A larger
  // initial accumulator would almost freeze its weight.
  ftrl.initial_accumulator = 1e-6f;
  return ftrl;
}

OptimizerSpec ModelRecipe::DeepOptimizer() {
  OptimizerSpec lazy_adam;
  lazy_adam.record = &RecordOf(OptimizerKind::kLazyAdam);
  lazy_adam.learning_rate = 1e-3f;
  return lazy_adam;
}

OptimizerSpec ModelRecipe::DenseOptimizer() {
  OptimizerSpec adam;
  adam.record = &RecordOf(OptimizerKind::kAdam);
  // Twice the rate of rows, so that a bias reaches the base rate before ids are memorized.
  adam.learning_rate = 2e-3f;
  return adam;
}

OptimizerSpec ModelRecipe::LinearOptimizer() {
  OptimizerSpec ftrl = WideOptimizer();
  ftrl.learning_rate = 0.2f;
  return ftrl;
}

RecipeSetting ClassesSetting() {
  return {"classes", 1u, 1, 65536, {}, "More than 1: softmax over as many classes."};
}

std::vector<RecipeSetting> HistorySettings() {
  return {{"history", std::string(), 0, 0, {}, "The feature with the keys of a history, in order."},
          {"target", std::string(), 0, 0, {}, "The feature that the history is compared with."},
          {"history_length", 50u, 1, 4096, {}, "Keys of a history; of more, the last ones count."}};
}

std::vector<RecipeSetting> TransformerSettings() {
  return {{"blocks", 1u, 1, 16, {}, "Blocks of a transformer above each other."},
          {"attention_heads", 2u, 1, 64, {}, "Heads of each self-attention."},
          {"feed_forward", 64u, 1, 65536, {}, "Width of the hidden layer in each block."}};
}

const RecipeValue& ValueOf(const ModelRecipe& recipe, const RecipeSetting& setting) {
  const auto found = recipe.own.find(setting.name);
  return found == recipe.own.end() ? setting.standard : found->second;
}

const RecipeSetting* RecipeRecord::Find(std::string_view setting) const {
  const auto found = std::ranges::find(settings, setting, &RecipeSetting::name);
  return found == settings.end() ? nullptr : &*found;
}

namespace {

// A name must mean the same in all recipes, because the job file documents it once.
void CheckSettings(const RecipeRecord& record, const std::vector<RecipeRecord>& others) {
  for (const RecipeSetting& setting : record.settings) {
    for (const RecipeRecord& other : others) {
      CHECK_NE(other.word, record.word);
      const RecipeSetting* const same = other.Find(setting.name);
      if (same == nullptr) continue;
      CHECK(same->standard == setting.standard && same->min == setting.min &&
            same->max == setting.max && same->words == setting.words && same->doc == setting.doc)
          << setting.name << " means another thing in " << other.word << " than in " << record.word;
    }
  }
}

std::string WhyOneDim(const RecipeRecord& record) {
  std::string others;
  for (const RecipeRecord& other : Recipes()) {
    if (other.fields.dims) others += (others.empty() ? "" : ", ") + other.word;
  }
  return record.word +
         " computes with the vectors of features as such, so all of them have embedding_dim "
         "columns; leave feature_dims out, or take a type that puts vectors side by side: " +
         others;
}

}  // namespace

const std::vector<RecipeRecord>& Recipes() {
  static const std::vector<RecipeRecord> recipes = [] {
    std::vector<RecipeRecord> list;
    const auto add = [&list](RecipeRecord record) {
      CheckSettings(record, list);
      list.push_back(std::move(record));
    };
#define HDPS_RECIPE(file, name) add(name##Recipe());
#include "common/job/recipes/recipe_list.def"
#undef HDPS_RECIPE
    return list;
  }();
  return recipes;
}

Result<ModelGraph> BuildModel(const ModelSpec& model, const ModelRecipe& recipe,
                              const FeatureNames& features) {
  const auto record = std::ranges::find(Recipes(), model.type, &RecipeRecord::word);
  CHECK(record != Recipes().end()) << model.type;
  if (!record->sparse() && features.numeric.empty()) {
    return Status(
        Code::kInvalidArgument,
        record->word + " reads numeric columns, and the data has none; choose another type");
  }
  if (record->sparse() && features.sparse.empty()) {
    return Status(
        Code::kInvalidArgument,
        record->word + " embeds categorical columns or features, and the data has none; use mlp");
  }
  if (record->fields.embedding && !record->fields.dims && !recipe.feature_dims.empty()) {
    ModelGraph refused;
    refused.problem = {"feature_dims", WhyOneDim(*record)};
    return refused;
  }
  GraphBuilder g(*record, model, recipe, features);
  record->build(g);
  return std::move(g).Done();
}

}  // namespace hdps
