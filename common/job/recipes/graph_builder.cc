// Implements the parts that recipes share.
#include "common/job/recipes/graph_builder.h"

#include <glog/logging.h>

#include <algorithm>
#include <map>
#include <utility>

#include "common/base/nearest_name.h"
#include "common/base/shard_map.h"
#include "common/job/activation.h"
#include "common/job/job_facts.h"
#include "common/job/layers/layer_record.h"
#include "common/job/recipes/recipe_graph.h"
#include "common/job/spec/loss_kind.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"

namespace hdps {

GraphBuilder::GraphBuilder(const RecipeRecord& record, const ModelSpec& model,
                           const ModelRecipe& recipe, const FeatureNames& features)
    : record_(record),
      model_(model),
      recipe_(recipe),
      features_(features),
      numeric_(recipe.numeric && !features.numeric.empty()),
      classes_(record.Find("classes") == nullptr ? 1 : Own<uint32_t>("classes")),
      graph_(std::make_unique<ModelGraph>()) {
  if (classes_ > 1) graph_->loss = LossKind::kSoftmax;
}
GraphBuilder::~GraphBuilder() = default;

void GraphBuilder::AddTable(const TableSpec& table) { graph_->tables.push_back(table); }

const RecipeValue& GraphBuilder::OwnValue(std::string_view setting) const {
  const RecipeSetting* const found = record_.Find(setting);
  CHECK(found != nullptr) << record_.word << " has no setting " << setting;
  return ValueOf(recipe_, *found);
}

std::string GraphBuilder::Wide() {
  AddTable({"wide", classes_, recipe_.wide_optimizer, recipe_.wide_init, false, ShardBy::kKey});
  LayerSpec keys = Layer("wide", "embedding", {});
  keys.table = "wide";
  keys.features = recipe_.wide_features;
  keys.combine = Combine::kSum;
  std::vector<std::string> parts = {Add(keys)};
  if (numeric_) parts.push_back(Linear("wide_numeric", Numeric(), classes_));
  return Add(Layer("wide_bias", "bias", {Sum("wide_sum", parts)}));
}

bool GraphBuilder::AddHistory() {
  const auto& history = Own<std::string>("history");
  const auto& target = Own<std::string>("target");
  if (!Knows("history", {history}) || !Knows("target", {target})) return false;
  if (history == target) {
    Refuse("target", "is the history itself; name another feature");
    return false;
  }
  for (const std::string& name : {history, target}) {
    if (!recipe_.feature_dims.contains(name)) continue;
    Refuse("feature_dims", "\"" + name +
                               "\" is compared with the other of history and target, so both have "
                               "embedding_dim columns; leave it out");
    return false;
  }
  LayerSpec sequence = Layer("history", "sequence", {});
  sequence.table = TableOf(recipe_.embedding_dim);
  sequence.features = {history};
  sequence.numbers["length"] = Own<uint32_t>("history_length");
  Add(sequence);
  Rows("target", {target});
  return true;
}

std::vector<std::string> GraphBuilder::BesideHistory() {
  std::vector<std::string> parts, others;
  for (const std::string& name :
       recipe_.deep_features.empty() ? features_.sparse : recipe_.deep_features) {
    if (name != Own<std::string>("history") && name != Own<std::string>("target")) {
      others.push_back(name);
    }
  }
  if (!others.empty()) parts.push_back(Rows("others", others));
  if (numeric_) parts.push_back(Numeric());
  return parts;
}

std::string GraphBuilder::TableOf(uint32_t dim) {
  const bool own = dim != recipe_.embedding_dim;
  const std::string name = own ? "deep_" + std::to_string(dim) : "deep";
  if (std::ranges::find(graph_->tables, name, &TableSpec::name) == graph_->tables.end()) {
    AddTable({name, dim, recipe_.deep_optimizer, recipe_.embedding_init, false, ShardBy::kKey});
  }
  return name;
}

std::string GraphBuilder::Embedding() {
  return Dropout("embedding_dropout", Rows("embedding", recipe_.deep_features),
                 recipe_.embedding_dropout);
}

std::string GraphBuilder::Rows(const std::string& name, const std::vector<std::string>& features) {
  if (recipe_.feature_dims.empty()) {
    return RowsOf(name, TableOf(recipe_.embedding_dim), features);
  }
  std::map<uint32_t, std::vector<std::string>> by_dim;
  for (const std::string& feature : features.empty() ? features_.sparse : features) {
    const auto own = recipe_.feature_dims.find(feature);
    if (own != recipe_.feature_dims.end()) own_dims_read_.insert(feature);
    by_dim[own == recipe_.feature_dims.end() ? recipe_.embedding_dim : own->second].push_back(
        feature);
  }
  std::vector<std::string> parts;
  const auto usual = by_dim.find(recipe_.embedding_dim);
  if (usual != by_dim.end()) {
    parts.push_back(RowsOf(name, TableOf(usual->first), usual->second));
    by_dim.erase(usual);
  }
  for (const auto& [dim, of_dim] : by_dim) {
    parts.push_back(RowsOf(name + "_" + std::to_string(dim), TableOf(dim), of_dim));
  }
  return parts.size() == 1 ? parts[0] : Concat(name + "_all", parts);
}

bool GraphBuilder::Knows(const std::string& setting, const std::vector<std::string>& features) {
  const std::vector<std::string>& known = features_.sparse;
  if (features.empty() || features[0].empty()) {
    Refuse(setting, record_.word + " needs it: the name of a sparse feature of the data");
  }
  for (const std::string& name : features) {
    if (name.empty() || std::ranges::find(known, name) != known.end()) continue;
    Refuse(setting, "\"" + name + "\" is no sparse feature of the data" + DidYouMean(name, known));
  }
  return graph_->problem.key.empty();
}

void GraphBuilder::Refuse(const std::string& setting, const std::string& problem) {
  if (graph_->problem.key.empty()) graph_->problem = {setting, problem};
}

std::string GraphBuilder::Numeric() {
  if (!numeric_added_) Add(Layer("numeric", "numeric", {}));
  numeric_added_ = true;
  return "numeric";
}

std::string GraphBuilder::WithNumeric(const std::string& input) {
  return numeric_ ? Concat("deep_input", {input, Numeric()}) : input;
}

std::string GraphBuilder::Hidden(const std::string& name, std::string input,
                                 const std::vector<uint32_t>& units) {
  for (size_t i = 0; i < units.size(); ++i) {
    const std::string layer = name + std::to_string(i + 1);
    if (recipe_.batch_norm) {
      input = Dense(layer, input, units[i], Activation::kNone);
      LayerSpec norm = Layer(layer + "_norm", "batch_norm", {input});
      if (recipe_.batch_norm_over != "part") norm.words["over"] = recipe_.batch_norm_over;
      LayerSpec relu = Layer(layer + "_relu", "activation", {Add(norm)});
      relu.activation = Activation::kRelu;
      input = Add(relu);
    } else {
      input = Dense(layer, input, units[i], Activation::kRelu);
    }
    input = Dropout(layer + "_dropout", input, recipe_.dropout);
  }
  return input;
}

std::string GraphBuilder::Dense(const std::string& name, const std::string& input, uint32_t units,
                                Activation activation) {
  LayerSpec layer = Layer(name, "dense", {input});
  layer.units = units;
  layer.activation = activation;
  return Add(layer);
}

std::string GraphBuilder::Transformer(const std::vector<std::string>& inputs, LayerSpec block) {
  const auto heads = Own<uint32_t>("attention_heads");
  if (recipe_.embedding_dim % heads != 0) {
    Refuse("attention_heads", std::to_string(heads) + " heads cannot share the " +
                                  std::to_string(recipe_.embedding_dim) +
                                  " columns of embedding_dim; take a divisor");
    return "";
  }
  std::string input = Dropout("positions_dropout", Add(Layer("positions", "positions", inputs)),
                              recipe_.embedding_dropout);
  for (uint32_t i = 1; i <= Own<uint32_t>("blocks"); ++i) {
    block.name = "block" + std::to_string(i);
    block.kind = "transformer";
    block.inputs = {input};
    block.units = Own<uint32_t>("feed_forward");
    block.numbers["heads"] = heads;
    input = Add(block);
  }
  return Add(Layer("interest", "last_vector", {input}));
}

std::string GraphBuilder::Logits(const std::string& name, const std::string& input) {
  return Dense(name, input, classes_, Activation::kNone);
}

std::string GraphBuilder::Linear(const std::string& name, const std::string& input,
                                 uint32_t units) {
  LayerSpec layer = Layer(name, "dense", {input});
  layer.units = units;
  layer.words["init"] = kZerosInit;
  return Add(layer);
}

std::string GraphBuilder::Concat(const std::string& name, const std::vector<std::string>& parts) {
  return Add(Layer(name, "concat", parts));
}

std::string GraphBuilder::Sum(const std::string& name, const std::vector<std::string>& parts) {
  return parts.size() == 1 ? parts[0] : Add(Layer(name, "sum", parts));
}

std::string GraphBuilder::Dropout(const std::string& name, const std::string& input, double rate) {
  if (rate == 0) return input;
  LayerSpec layer = Layer(name, "dropout", {input});
  layer.numbers["rate"] = rate;
  return Add(layer);
}

std::string GraphBuilder::Add(const LayerSpec& layer) {
  graph_->layers.push_back(layer);
  return layer.name;
}

std::string GraphBuilder::RowsOf(const std::string& name, const std::string& table,
                                 const std::vector<std::string>& features) {
  LayerSpec layer = Layer(name, "embedding", {});
  layer.table = table;
  layer.features = features;
  return Add(layer);
}

ModelGraph GraphBuilder::Done() && {
  for (const auto& [feature, dim] : recipe_.feature_dims) {
    if (!record_.fields.embedding || own_dims_read_.contains(feature)) continue;
    if (Knows("feature_dims", {feature})) {
      Refuse("feature_dims", "no embedding of this model reads \"" + feature +
                                 "\"; name features of it, or leave that one out");
    }
  }
  return std::move(*graph_);
}

LayerSpec GraphBuilder::Layer(const std::string& name, const std::string& kind,
                              std::vector<std::string> inputs) {
  LayerSpec layer;
  layer.name = name;
  layer.kind = kind;
  layer.inputs = std::move(inputs);
  return layer;
}

}  // namespace hdps
