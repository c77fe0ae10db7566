// What recipes are built with: tables and layers added one after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/job/recipes/recipe_record.h"

namespace hdps {

struct FeatureNames;
struct LayerSpec;
struct ModelGraph;  // recipe_graph.h
struct ModelSpec;
struct TableSpec;
enum class Activation : uint8_t;

// Each function that adds layers gives the name of the last one it added.
//
// Invariant: every layer's inputs are before it.
class GraphBuilder {
 public:
  // All are referred to, and have to outlive it.
  GraphBuilder(const RecipeRecord& record, const ModelSpec& model, const ModelRecipe& recipe,
               const FeatureNames& features);
  ~GraphBuilder();

  const ModelSpec& model() const { return model_; }  // Without layers: those are being made.
  const ModelRecipe& recipe() const { return recipe_; }
  const FeatureNames& features() const { return features_; }
  // Whether the numeric columns take part.
  bool numeric() const { return numeric_; }
  // The value of a setting in the recipe's record.
  template <typename Value>
  const Value& Own(std::string_view setting) const {
    return std::get<Value>(OwnValue(setting));
  }

  // Logits of an example: 1, or as many as the setting `classes` says, where the recipe has it.
  uint32_t classes() const { return classes_; }
  // [n, classes]: one weight a key, one a numeric column, and a bias, each for every class.
  std::string Wide();
  // [n, F * dim]: the rows of the table "deep", and dropout where the recipe has one. Features of
  // other dims stand behind those of the recipe's own, by dim.
  std::string Embedding();
  // [n, sum of their dims]: rows of these features, in the same order.
  std::string Rows(const std::string& name, const std::vector<std::string>& features);
  // The table "deep" by itself, for layers of the recipe's own.
  void AddDeepTable();
  // [n, numeric columns]; one layer, however often it is asked for.
  std::string Numeric();
  // The input, and the numeric columns beside it where they take part.
  std::string WithNumeric(const std::string& input);
  // Hidden layers "NAME1", "NAME2", ...: product, batch_norm, relu, dropout, where the recipe has
  // the second and the last.
  std::string Hidden(const std::string& name, std::string input,
                     const std::vector<uint32_t>& units);
  std::string Dense(const std::string& name, const std::string& input, uint32_t units,
                    Activation activation);
  // [n, classes]: a dense layer without activation.
  std::string Logits(const std::string& name, const std::string& input);
  // A dense layer from features right to the logits. It begins with weights of 0, whatever
  // `dense_init` says: others would be worse than a constant until they are unlearned.
  std::string Linear(const std::string& name, const std::string& input, uint32_t units);
  std::string Concat(const std::string& name, const std::vector<std::string>& parts);
  // The parts added; a single one is itself.
  std::string Sum(const std::string& name, const std::vector<std::string>& parts);
  // The input itself where the rate is 0.
  std::string Dropout(const std::string& name, const std::string& input, double rate);
  std::string Add(const LayerSpec& layer);
  void AddTable(const TableSpec& table);
  // Whether a setting names features, and only such as the data has; else refuses it.
  bool Knows(const std::string& setting, const std::vector<std::string>& features);
  // What is wrong with the value of a setting; the first one is told. The recipe ends there.
  void Refuse(const std::string& setting, const std::string& problem);
  static LayerSpec Layer(const std::string& name, const std::string& kind,
                         std::vector<std::string> inputs);
  ModelGraph Done() &&;

 private:
  std::string RowsOf(const std::string& name, const std::string& table,
                     const std::vector<std::string>& features);
  // The table of rows of that dim, added where it is asked for first.
  std::string TableOf(uint32_t dim);
  const RecipeValue& OwnValue(std::string_view setting) const;

  const RecipeRecord& record_;
  const ModelSpec& model_;
  const ModelRecipe& recipe_;
  const FeatureNames& features_;
  const bool numeric_;
  const uint32_t classes_;
  bool numeric_added_ = false;
  std::set<std::string> own_dims_read_;  // Features of recipe_.feature_dims that a layer reads.
  const std::unique_ptr<ModelGraph> graph_;
};

}  // namespace hdps
