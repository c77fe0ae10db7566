// The model of a job: a recipe expanded, or a graph spelled out.
#include <algorithm>

#include "common/job/model_zoo.h"
#include "common/job/text/job_reading.h"
#include "common/job/text/layer_text.h"
#include "common/job/text/optimizer_text.h"

namespace hdps {

namespace {

InitSpec ReadInit(const JsonValue& object, std::string_view key, const InitSpec& base) {
  const JsonValue* value = object.Find(key);
  if (value == nullptr) return base;
  InitSpec spec;
  ReadChoice(*value, "init", "kind", &spec.kind);
  ReadKey(*value, "scale", &spec.scale);
  if (spec.kind == InitKind::kZeros) spec.scale = 0;
  return spec;
}

PolicySpec ReadPolicy(const JsonValue& object) {
  PolicySpec policy;
  const JsonValue* value = object.Find("policy");
  if (value == nullptr) return policy;
  ReadKey(*value, "admit_after", &policy.admit_after);
  ReadKey(*value, "admit_probability", &policy.admit_probability);
  ReadBytes(*value, "admit_sketch_bytes", &policy.admit_sketch_bytes);
  ReadKey(*value, "evict_after_steps", &policy.evict_after_steps);
  ReadKey(*value, "max_rows", &policy.max_rows);
  ReadBytes(*value, "max_bytes", &policy.max_bytes);
  ReadChoice(*value, "policy", "evict_by", &policy.evict_by);
  return policy;
}

ModelRecipe ReadRecipe(const JsonValue& object) {
  ModelRecipe recipe;
  ReadKey(object, "type", &recipe.type);
  ReadKey(object, "embedding_dim", &recipe.embedding_dim);
  ReadKey(object, "hidden", &recipe.hidden);
  ReadKey(object, "bottom_hidden", &recipe.bottom_hidden);
  ReadKey(object, "cross_layers", &recipe.cross_layers);
  ReadKey(object, "classes", &recipe.classes);
  ReadKey(object, "wide_features", &recipe.wide_features);
  ReadKey(object, "deep_features", &recipe.deep_features);
  ReadKey(object, "numeric", &recipe.numeric);
  recipe.wide_optimizer = ReadOptimizer(object, "wide_optimizer", recipe.wide_optimizer);
  recipe.deep_optimizer = ReadOptimizer(object, "deep_optimizer", recipe.deep_optimizer);
  recipe.wide_init = ReadInit(object, "wide_init", recipe.wide_init);
  recipe.embedding_init = ReadInit(object, "embedding_init", recipe.embedding_init);
  return recipe;
}

std::vector<TableSpec> ReadTables(const JsonValue& object) {
  std::vector<TableSpec> tables;
  const JsonValue* list = object.Find("tables");
  if (list == nullptr) return tables;
  for (const JsonValue& item : list->items) {
    TableSpec table;
    ReadKey(item, "name", &table.name);
    ReadKey(item, "dim", &table.dim);
    table.optimizer = ReadOptimizer(item, "optimizer", ModelRecipe::DeepOptimizer());
    table.init = ReadInit(item, "init", table.init);
    table.policy = ReadPolicy(item);
    ReadChoice(item, "table", "weights", &table.weights);
    ReadKey(item, "vocab_cache_size", &table.vocab_cache_size);
    tables.push_back(std::move(table));
  }
  return tables;
}

// A graph that was spelled out needs nothing of the recipe.
void WarnOfRecipe(const JsonValue& object, std::vector<std::string>* warnings) {
  for (const std::string& name : object.names) {
    const bool of_graph = name == "type" || name == "tables" || name == "layers" ||
                          name == "dense_optimizer" || name == "loss" || name == "device" ||
                          name == "first_layer";
    if (!of_graph) {
      warnings->push_back("model." + name + " is ignored: model.layers spells the model out");
    }
  }
}

// Feature names of a recipe, told by the key they stand under.
Status CheckFeatureLists(const JobSource& source, const JsonValue& object,
                         const FeatureNames& features) {
  for (const char* key : {"wide_features", "deep_features"}) {
    std::vector<std::string> names;
    ReadKey(object, key, &names);
    LayerSpec layer;
    layer.kind = "embedding";
    layer.table = "table";
    layer.features = names;
    TableSpec table;
    table.name = "table";
    const LayerRecord& embedding = *BuiltInLayers().Find(layer.kind);
    const auto measured = embedding.measure({layer, {}, {table}, features});
    if (const auto* wrong = std::get_if<LayerProblem>(&measured)) {
      return Refuse(source, "model." + std::string(key), wrong->problem);
    }
  }
  return {};
}

}  // namespace

Status ReadModel(const JobSource& source, Job* job) {
  static const JsonValue kEmpty = JsonValue::Object();
  const JsonValue* found = source.root.Find("model");
  const JsonValue& object = found == nullptr ? kEmpty : *found;
  const FeatureNames features = FeaturesOf(job->data);
  const ModelRecipe recipe = ReadRecipe(object);
  job->model.type = recipe.type;
  ReadKey(object, "device", &job->model.device);
  ReadChoice(object, "model", "first_layer", &job->model.first_layer);
  job->model.loss =
      recipe.type == "mlp" && recipe.classes > 1 ? LossKind::kSoftmax : LossKind::kLogloss;
  ReadChoice(object, "model", "loss", &job->model.loss);

  const JsonValue* layers = object.Find("layers");
  if (layers != nullptr && !layers->items.empty()) {
    WarnOfRecipe(object, &job->warnings);
    job->tables = ReadTables(object);
    job->model.layers = ReadLayers(RecordsOf(job->model), *layers);
  } else if (recipe.type == "graph") {
    return Refuse(source, "model.type",
                  "\"graph\" needs the model spelled out in model.layers; give them, or another "
                  "type");
  } else {
    if (object.Find("tables") != nullptr) {
      job->warnings.push_back("model.tables is ignored: it counts only beside model.layers");
    }
    Result<ModelGraph> graph = BuildModel(recipe, features);
    if (!graph.ok()) return Refuse(source, "model.type", graph.status().message());
    if (!features.sparse.empty()) {
      HDPS_RETURN_IF_ERROR(CheckFeatureLists(source, object, features));
    }
    job->tables = std::move(graph->tables);
    for (TableSpec& table : job->tables) {
      table.policy = ReadPolicy(object);
      if (table.dim > 1) ReadChoice(object, "model", "weights", &table.weights);
      ReadKey(object, "vocab_cache_size", &table.vocab_cache_size);
    }
    job->model.layers = std::move(graph->layers);
  }
  for (const GraphProblem& problem : CheckGraph(job->model, job->tables, features)) {
    return Refuse(source, "model." + problem.place, problem.problem);
  }
  job->tables.push_back(
      DenseTable(ReadOptimizer(object, "dense_optimizer", ModelRecipe::DenseOptimizer())));
  return {};
}

}  // namespace hdps
