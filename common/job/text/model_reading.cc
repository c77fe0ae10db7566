// The model of a job: a recipe expanded, or a graph spelled out.
#include <utility>

#include "common/job/job_registry.h"
#include "common/job/model_graph.h"
#include "common/job/text/job_sections.h"

namespace hdps {

namespace {

// A graph that was spelled out needs nothing of the recipe: of what has an effect under some
// recipes alone.
void WarnOfRecipe(const JsonValue& object, const ModelText& text, Job* job) {
  const Section section = ModelSection(RegistryOf(job->model));
  for (const Setting& setting : section.settings) {
    if (!setting.only_where.has_value() || !HasEffect(section, setting, &text)) continue;
    if (object.Find(setting.key) == nullptr) continue;
    job->warnings.push_back("model." + setting.key +
                            " is ignored: model.layers spells the model out");
  }
}

// Feature names of a recipe, told by the key they stand under.
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

}  // namespace

Status BuildJobModel(const JobSource& source, const ModelText& text, Job* job) {
  const JsonValue& object = *source.root.Find("model");
  const FeatureNames features = FeaturesOf(job->data);
  job->model = text;
  if (!text.layers.empty()) {
    WarnOfRecipe(object, text, job);
    job->tables = text.tables;
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
      table.policy = text.policy;
      if (table.dim > 1) table.weights = text.weights;
      table.vocab_cache_size = text.vocab_cache_size;
    }
    job->model.layers = std::move(graph->layers);
  }
  for (const GraphProblem& problem : CheckGraph(job->model, job->tables, features)) {
    return Refuse(source, "model." + problem.place, problem.problem);
  }
  job->tables.push_back(DenseTable(text.dense_optimizer));
  return {};
}

}  // namespace hdps
