// Reads the model of a job: expands a recipe, or takes a listed graph.
#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/nearest_name.h"
#include "common/job/job_facts.h"
#include "common/job/job_registry.h"
#include "common/job/job_spec.h"
#include "common/job/model_graph.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/recipes/recipe_graph.h"
#include "common/job/recipes/recipe_record.h"
#include "common/job/schedule.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/job/text/job_sections.h"
#include "common/job/text/job_text.h"

namespace hdps {

namespace {

// Warns of recipe settings beside a listed graph, which ignores them.
void WarnOfRecipe(const JsonValue& object, const ModelText& text, Job* job) {
  const Section section = ModelSection(RegistryOf(job->model));
  for (const Setting& setting : section.settings) {
    if (!setting.only_where.has_value() || !HasEffect(section, setting, &text)) continue;
    if (object.Find(setting.key) == nullptr) continue;
    job->warnings.push_back("model." + setting.key +
                            " is ignored: model.layers spells the model out");
  }
}

// Checks the feature names of a recipe; errors name the key that they stand under.
Status CheckFeatureLists(const JobSource& source, const ModelRecipe& recipe,
                         const FeatureNames& features) {
  for (const bool wide : {true, false}) {
    const std::string key = wide ? "wide_features" : "deep_features";
    LayerSpec layer;
    layer.kind = "embedding";
    layer.table = "table";
    layer.features = wide ? recipe.wide_features : recipe.deep_features;
    TableSpec table;
    table.name = "table";
    const LayerRecord& embedding = *BuiltInLayers().Find(layer.kind);
    const auto measured = embedding.measure({layer, {}, {table}, features});
    if (const auto* wrong = std::get_if<LayerProblem>(&measured)) {
      return Refuse(source, "model." + key, wrong->problem);
    }
  }
  return {};
}

// Replaces an init by fan by the uniform or normal init that it means for rows of the table.
void ResolveInit(const JsonValue* given, const std::string& place, TableSpec* table, Job* job) {
  const JsonValue* kind = given == nullptr ? nullptr : given->Find("kind");
  if (kind == nullptr || std::ranges::find(FanInits(), kind->text) == FanInits().end()) return;
  if (given->Find("scale") != nullptr) {
    job->warnings.push_back(place + ".scale is ignored: that of " + kind->text +
                            " follows from the dim");
  }
  table->init = FanInit(kind->text, table->dim, table->dim);
}

// Warns of tables whose learning rates cannot be moved. `place` is the setting that moves the rates
// of the whole job; `names` are these tables.
void WarnOfRatesThatStay(const std::string& place, const std::vector<std::string>& names,
                         Job* job) {
  if (names.empty()) return;
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + Quoted(name);
  job->warnings.push_back(place + " does not move the learning rate of " + list +
                          ": weights of ftrl are a quotient by it and would shrink with it; "
                          "with another optimizer, such as adagrad, they follow");
}

// Returns the prefix of the settings for a recipe's table.
std::string RecipeKey(const TableSpec& table) {
  if (table.dense) return "dense";
  return table.name == "wide" ? "wide" : "deep";
}

// Gives the layers of a recipe their settings by name.
Status PlaceLayers(const JobSource& source, const ModelText& text, std::vector<LayerSpec>* layers) {
  for (const auto& [name, given] : text.layer_settings) {
    const auto layer = std::ranges::find(*layers, name, &LayerSpec::name);
    if (layer == layers->end()) {
      std::vector<std::string> known;
      std::string list;
      for (const LayerSpec& one : *layers) {
        known.push_back(one.name);
        list += (list.empty() ? "" : ", ") + one.name;
      }
      return Refuse(source, "model.layer_settings." + name,
                    text.type + " has no layer of this name" + DidYouMean(name, known) +
                        "; its layers are " + list);
    }
    layer->fusion = given.fusion;
    layer->device = given.device;
    layer->layerwise_parallel = given.layerwise_parallel;
    layer->dense_exchange = given.dense_exchange;
    layer->dense_target = given.dense_target;
    layer->shard = given.shard;
  }
  return {};
}

// Lists the settings of tables that the job does not say. A recipe has one of each for all tables.
std::vector<std::string> OpenSettings(const JsonValue& model, bool recipe) {
  std::vector<std::string> open;
  const auto list = [&open](const JsonValue& object, const std::string& place) {
    for (const char* key : {"vocab_cache_size", "slice_mode"}) {
      if (object.Find(key) == nullptr) open.push_back(place + "." + key);
    }
  };
  if (recipe) list(model, "model");
  const JsonValue* const tables = recipe ? nullptr : model.Find("tables");
  for (size_t t = 0; tables != nullptr && t < tables->items.size(); ++t) {
    list(tables->items[t], "model.tables." + std::to_string(t));
  }
  return open;
}

void TakeListedTables(const JsonValue& object, const ModelText& text, Job* job) {
  job->tables = text.tables;
  for (size_t t = 0; t < job->tables.size(); ++t) {
    ResolveInit(object.Find("tables")->items[t].Find("init"),
                "model.tables." + std::to_string(t) + ".init", &job->tables[t], job);
  }
}

// Takes the tables of a model that is another program's. No gradient reaches the dense table.
Status BuildTables(const JobSource& source, const ModelText& text, Job* job) {
  if (!text.layers.empty()) {
    return Refuse(source, "model.layers",
                  "type tables has no layers: the model is your program's; leave them out, or take "
                  "type graph");
  }
  if (text.tables.empty()) {
    return Refuse(source, "model.tables",
                  "type tables needs the tables of your program; give one at least, such as "
                  "{\"name\": \"words\", \"dim\": 16}");
  }
  TakeListedTables(*source.root.Find("model"), text, job);
  for (const GraphProblem& problem : CheckGraph(job->model, job->tables, FeatureNames())) {
    return Refuse(source, "model." + problem.place, problem.problem);
  }
  job->tables.push_back(DenseTable(DefaultsOf(RecordOf(OptimizerKind::kSgd))));
  return {};
}

}  // namespace

std::string PlaceOfLayer(const JobSource& source, const Job& job, size_t i,
                         const std::string& key) {
  const JsonValue* const layers = source.root.Find("model")->Find("layers");
  const bool listed = layers != nullptr && !layers->items.empty();
  return (listed ? "model.layers." + std::to_string(i)
                 : "model.layer_settings." + job.model.layers[i].name) +
         "." + key;
}

Status BuildJobModel(const JobSource& source, const ModelText& text, Job* job) {
  const JsonValue& object = *source.root.Find("model");
  const FeatureNames features = FeaturesOf(job->data);
  job->model = text;
  if (text.type == kTablesType) return BuildTables(source, text, job);
  if (!text.layers.empty()) {
    WarnOfRecipe(object, text, job);
    TakeListedTables(object, text, job);
  } else if (text.type == "graph") {
    return Refuse(source, "model.type",
                  "\"graph\" needs the model spelled out in model.layers; give them, or another "
                  "type");
  } else {
    if (object.Find("tables") != nullptr) {
      job->warnings.push_back("model.tables is ignored: it counts only beside model.layers");
    }
    Result<ModelGraph> graph = BuildModel(text, text, features);
    if (!graph.ok()) return Refuse(source, "model.type", graph.status().message());
    if (!graph->problem.key.empty()) {
      return Refuse(source, "model." + graph->problem.key, graph->problem.problem);
    }
    if (!features.sparse.empty()) {
      HDPS_RETURN_IF_ERROR(CheckFeatureLists(source, text, features));
    }
    if (object.Find("loss") == nullptr && graph->loss.has_value()) job->model.loss = *graph->loss;
    job->tables = std::move(graph->tables);
    for (TableSpec& table : job->tables) {
      const bool wide = RecipeKey(table) == "wide";
      const std::string init = wide ? "wide_init" : "embedding_init";
      ResolveInit(object.Find(init), "model." + init, &table, job);
      table.schedule = wide ? text.wide_schedule : text.deep_schedule;
      table.loss_l1 = wide ? text.wide_loss_l1 : text.deep_loss_l1;
      table.loss_l2 = wide ? text.wide_loss_l2 : text.deep_loss_l2;
      table.policy = text.policy;
      if (table.dim > 1) table.weights = text.weights;
      table.vocab_cache_size = text.vocab_cache_size;
      const bool whole = text.slice_mode == SliceMode::kColumn && table.dim == 1;
      table.slice_mode = whole ? SliceMode::kBatch : text.slice_mode;
      table.manual_shapes = text.manual_shapes;
      table.column_slices = text.column_slices;
    }
    job->model.layers = std::move(graph->layers);
    for (LayerSpec& layer : job->model.layers) {
      if (layer.kind == "dense") layer.words.try_emplace("init", text.dense_init);
    }
    HDPS_RETURN_IF_ERROR(PlaceLayers(source, text, &job->model.layers));
  }
  for (const GraphProblem& problem : CheckGraph(job->model, job->tables, features)) {
    return Refuse(source, "model." + problem.place, problem.problem);
  }
  if (job->parallel.parallel_mode == ParallelMode::kAuto) {
    job->parallel.open_settings = OpenSettings(object, text.layers.empty());
  }
  GraphShape shape;
  MeasureGraph(job->model, job->tables, features, &shape);
  TableSpec& dense = job->tables.emplace_back(DenseTable(text.dense_optimizer));
  dense.averaged = AveragedTensors(shape);
  dense.schedule = text.dense_schedule;
  dense.loss_l1 = text.dense_loss_l1;
  dense.loss_l2 = text.dense_loss_l2;
  return {};
}

Status FillSchedules(const JobSource& source, const ScheduleSpec& all, Job* job) {
  const JsonValue& object = *source.root.Find("model");
  const JsonValue* layers = object.Find("layers");
  const bool spelled_out = (layers != nullptr && !layers->items.empty()) || IsTablesJob(*job);
  const JsonValue* listed = spelled_out ? object.Find("tables") : nullptr;
  std::vector<std::string> staying,
      of_all;  // Tables whose rates stay: all of them, and those that should have followed `all`.
  for (size_t t = 0; t < job->tables.size(); ++t) {
    TableSpec& table = job->tables[t];
    if (table.dense && IsTablesJob(*job)) continue;  // It is never updated.
    const bool own_place = listed != nullptr && !table.dense;
    const std::string key = own_place ? "schedule" : RecipeKey(table) + "_schedule";
    const JsonValue* given = (own_place ? listed->items[t] : object).Find(key);
    std::string place = own_place ? "model.tables." + std::to_string(t) : "model";
    place += "." + key;
    if (!FollowsSchedule(table.optimizer)) staying.push_back(table.name);
    if (given == nullptr) {
      if (all != ScheduleSpec() && !FollowsSchedule(table.optimizer)) of_all.push_back(table.name);
      table.schedule = all;
      place = "train.schedule";
    } else if (table.schedule != ScheduleSpec() && !FollowsSchedule(table.optimizer)) {
      job->warnings.push_back(place + " is ignored: the learning rate of " +
                              OptimizerName(table.optimizer) + " follows no schedule");
    }
    if (table.schedule.kind != ScheduleKind::kConstant && table.schedule.decay_steps == 0) {
      return Refuse(source, place,
                    "kind " + Quoted(std::string(WordOf(table.schedule.kind))) +
                        " needs decay_steps, the steps that its way takes; give them");
    }
  }
  WarnOfRatesThatStay("train.schedule", of_all, job);
  if (job->train.plateau.patience > 0) WarnOfRatesThatStay("train.plateau", staying, job);
  if (job->train.staleness_rate && job->train.mode != Mode::kSync) {
    WarnOfRatesThatStay("train.staleness_rate", staying, job);
  }
  return {};
}

}  // namespace hdps
