// Builds the graph of a recipe: adds tables and layers one after the other.
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

// Each function that adds layers returns the name of the last one it added.
//
// Invariant: every layer's inputs come before it.
class GraphBuilder {
 public:
  // Keeps references to all arguments, which must outlive it.
  GraphBuilder(const RecipeRecord& record, const ModelSpec& model, const ModelRecipe& recipe,
               const FeatureNames& features);
  ~GraphBuilder();

  const ModelSpec& model() const { return model_; }  // The model, whose layers are still missing.
  const ModelRecipe& recipe() const { return recipe_; }
  const FeatureNames& features() const { return features_; }
  // Is true if the numeric columns are used.
  bool numeric() const { return numeric_; }
  // Returns the value of a setting in the recipe's record.
  template <typename Value>
  const Value& Own(std::string_view setting) const {
    return std::get<Value>(OwnValue(setting));
  }

  // Number of logits of an example: 1, or the setting `classes` if the recipe has it.
  uint32_t classes() const { return classes_; }
  // [n, classes]: the wide part. It has one weight for each key, one for each numeric column, and a
  // bias, all for each class.
  std::string Wide();
  // [n, F * dim]: the rows of the table "deep", with dropout if the recipe has it. Features with
  // other dims follow those with the recipe's own, by dim.
  std::string Embedding();
  // [n, sum of their dims]: rows of these features, in the same order.
  std::string Rows(const std::string& name, const std::vector<std::string>& features);
  // Adds "history" [n, history_length * embedding_dim], a sequence, and "target" [n,
  // embedding_dim], with rows of the features that the settings of these names give. Is false if a
  // setting is refused.
  bool AddHistory();
  // Returns rows of the features besides history and target, and the numeric columns, if there are
  // any and they are used.
  std::vector<std::string> BesideHistory();
  // [n, numeric columns]; there is one such layer, however often this is called.
  std::string Numeric();
  // Returns the input, with the numeric columns appended if they are used.
  std::string WithNumeric(const std::string& input);
  // Hidden layers "NAME1", "NAME2", ...: product, batch_norm, relu, dropout. batch_norm and dropout
  // are added if the recipe has them.
  std::string Hidden(const std::string& name, std::string input,
                     const std::vector<uint32_t>& units);
  // Learned positions on the history, "positions", and the transformer's blocks "block1", "block2",
  // ... above them; `block` says what each is like. Returns [n, embedding_dim], what they make of
  // the last vector; "" if a setting is refused. `inputs` are those of the positions.
  std::string Transformer(const std::vector<std::string>& inputs, LayerSpec block);
  std::string Dense(const std::string& name, const std::string& input, uint32_t units,
                    Activation activation);
  // [n, classes]: a dense layer without activation.
  std::string Logits(const std::string& name, const std::string& input);
  // A dense layer directly from features to the logits. It starts with weights of 0, whatever
  // `dense_init` says: others would be worse than a constant until training has removed them.
  std::string Linear(const std::string& name, const std::string& input, uint32_t units);
  std::string Concat(const std::string& name, const std::vector<std::string>& parts);
  // The sum of the parts; a single part is returned as it is.
  std::string Sum(const std::string& name, const std::vector<std::string>& parts);
  // Returns the input itself if the rate is 0.
  std::string Dropout(const std::string& name, const std::string& input, double rate);
  std::string Add(const LayerSpec& layer);
  void AddTable(const TableSpec& table);
  // Is true if a setting names features and all are in the data; otherwise refuses it.
  bool Knows(const std::string& setting, const std::vector<std::string>& features);
  // Reports what is wrong with the value of a setting; only the first report counts. The recipe
  // should then return.
  void Refuse(const std::string& setting, const std::string& problem);
  static LayerSpec Layer(const std::string& name, const std::string& kind,
                         std::vector<std::string> inputs);
  ModelGraph Done() &&;

 private:
  std::string RowsOf(const std::string& name, const std::string& table,
                     const std::vector<std::string>& features);
  // Returns the table for rows of this dim, which is added on the first call.
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
