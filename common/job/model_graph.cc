// Visits a graph of layers and asks each layer's record for its shape.
#include "common/job/model_graph.h"

#include <glog/logging.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "common/base/nearest_name.h"
#include "common/base/shard_map.h"
#include "common/job/job_facts.h"
#include "common/job/job_registry.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/loss_kind.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"

namespace hdps {

namespace {

constexpr uint64_t kWidthMax = 1 << 20;

// Invariant: every node in `graph` belongs to a layer without a problem.
class GraphWalk {
 public:
  GraphWalk(const ModelSpec& model, const std::vector<TableSpec>& tables,
            const FeatureNames& features, GraphShape* graph)
      : model_(model), tables_(tables), features_(features), graph_(*graph) {}

  std::vector<GraphProblem> Run() {
    graph_.nodes.clear();
    if (model_.layers.empty()) return {{"layers", "a model needs at least one layer"}};
    for (size_t i = 0; i < model_.layers.size() && problems_.empty(); ++i) Measure(i);
    if (problems_.empty()) CheckLogits();
    return std::move(problems_);
  }

 private:
  void Complain(const std::string& key, const std::string& problem) {
    problems_.push_back({"layers." + std::to_string(graph_.nodes.size()) + "." + key, problem});
  }

  void Measure(size_t i) {
    const LayerSpec& layer = model_.layers[i];
    const auto known = [&](const std::string& name) {
      return std::ranges::find(names_, name) != names_.end();
    };
    if (layer.name.empty() || known(layer.name)) {
      return Complain("name", "\"" + layer.name +
                                  "\" cannot name a layer: names are not empty and all different");
    }
    const LayerRecord* const record = RegistryOf(model_).layers.Find(layer.kind);
    if (record == nullptr) {
      return Complain("kind", "\"" + layer.kind + "\" is no kind of layer" +
                                  DidYouMean(layer.kind, RegistryOf(model_).layers.kinds()));
    }
    GraphShape::Node node;
    LayerQuestion question{layer, {}, tables_, features_};
    for (const std::string& name : layer.inputs) {
      if (!known(name)) {
        return Complain("inputs",
                        "\"" + name + "\" is no layer before this one" + DidYouMean(name, names_));
      }
      const auto at = static_cast<size_t>(std::ranges::find(names_, name) - names_.begin());
      node.inputs.push_back(static_cast<uint32_t>(at));
      question.inputs.push_back({model_.layers[at], graph_.nodes[at].shape});
    }
    if (!CheckInputCount(layer, *record)) return;
    if (record->fields.units && layer.units == 0) {
      return Complain("units", "\"" + layer.name + "\" needs units of at least 1");
    }
    const std::variant<LayerShape, LayerProblem> measured = record->measure(question);
    if (const auto* wrong = std::get_if<LayerProblem>(&measured)) {
      return Complain(wrong->key, wrong->problem);
    }
    node.shape = std::get<LayerShape>(measured);
    if (node.shape.width > kWidthMax) {
      return Complain("kind", "this layer would be " + std::to_string(node.shape.width) +
                                  " wide, at most " + std::to_string(kWidthMax) + " is allowed");
    }
    names_.push_back(layer.name);
    graph_.nodes.push_back(std::move(node));
  }

  bool CheckInputCount(const LayerSpec& layer, const LayerRecord& record) {
    const size_t count = layer.inputs.size();
    if (count >= record.inputs_min && count <= record.inputs_max) return true;
    std::string wanted = std::to_string(record.inputs_min);
    if (record.inputs_max == kManyInputs) {
      wanted += " or more";
    } else if (record.inputs_max > record.inputs_min) {
      wanted += " or " + std::to_string(record.inputs_max);
    }
    Complain("inputs", "\"" + layer.name + "\" has " + std::to_string(count) +
                           " inputs, and layers of its kind take " + wanted);
    return false;
  }

  void CheckLogits() {
    const LayerQuestion::Input last = {model_.layers.back(), graph_.nodes.back().shape};
    std::string problem;
    if (const std::string wanted = WidthWanted(last.shape); !wanted.empty()) {
      problem = "the last layer, " + last.Shown() + ", has to be " + wanted;
    } else if (!last.shape.learns) {
      problem = "nothing below the last layer, " + last.Shown() + ", learns";
    }
    if (problem.empty()) return;
    const std::string place = "layers." + std::to_string(model_.layers.size() - 1) + ".units";
    problems_.push_back({place, problem});
  }

  // Returns the width that the logits should have; empty if it is right.
  std::string WidthWanted(const LayerShape& logits) const {
    const size_t tasks = model_.tasks.size();
    if (tasks > 0) {
      return logits.width == tasks ? "" : std::to_string(tasks) + " wide, one logit a task";
    }
    switch (model_.loss) {
      case LossKind::kSoftmax:
        return logits.width >= 2 ? "" : "at least 2 wide under softmax";
      case LossKind::kSampledSoftmax:
        if (model_.layers.back().kind == "towers") return "";
        return "one of kind towers under sampled_softmax";
      default:
        return logits.width == 1 ? "" : "1 wide under " + std::string(WordOf(model_.loss));
    }
  }

  const ModelSpec& model_;
  const std::vector<TableSpec>& tables_;
  const FeatureNames& features_;
  GraphShape& graph_;
  std::vector<std::string> names_;  // Names of the layers visited.
  std::vector<GraphProblem> problems_;
};

void CheckTables(const std::vector<TableSpec>& tables, std::vector<GraphProblem>* problems) {
  std::set<std::string> names;
  for (size_t t = 0; t < tables.size(); ++t) {
    const TableSpec& table = tables[t];
    const std::string place = "tables." + std::to_string(t) + ".";
    if (table.dense) continue;
    if (table.name.empty() || table.name == "dense" || !names.insert(table.name).second) {
      problems->push_back({place + "name", "\"" + table.name +
                                               "\" cannot name a table: names are not empty, "
                                               "not \"dense\", and all different"});
    }
    if (RecordOf(table.optimizer).whole_tensors) {
      problems->push_back({place + "optimizer",
                           std::string(OptimizerName(table.optimizer)) +
                               " needs whole tensors and cannot update the rows of a table; use "
                               "adamw or lazy_adam, or this one as dense_optimizer"});
    }
  }
}

// Layers and tables that nothing reads are probably mistyped names.
void CheckUnused(const ModelSpec& model, const std::vector<TableSpec>& tables,
                 const GraphShape& graph, std::vector<GraphProblem>* problems) {
  std::vector<bool> used(model.layers.size(), false);
  used.back() = true;
  std::set<std::string> used_tables;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    for (const uint32_t input : graph.nodes[i].inputs) used[input] = true;
    used_tables.insert(model.layers[i].table);
  }
  for (size_t i = 0; i < model.layers.size(); ++i) {
    if (used[i]) continue;
    problems->push_back({"layers." + std::to_string(i) + ".name",
                         "\"" + model.layers[i].name + "\" is used by no layer"});
    return;
  }
  for (size_t t = 0; t < tables.size(); ++t) {
    if (tables[t].dense || used_tables.contains(tables[t].name)) continue;
    problems->push_back({"tables." + std::to_string(t) + ".name",
                         "\"" + tables[t].name + "\" is used by no layer"});
  }
}

GraphShape ShapeOfChecked(const Job& job) {
  GraphShape graph;
  const std::vector<GraphProblem> problems =
      MeasureGraph(job.model, job.tables, FeaturesOf(job.data), &graph);
  CHECK(problems.empty()) << problems[0].place << ": " << problems[0].problem;
  return graph;
}

// Returns one for each label column, whose values are any numbers: what they mean is up to the
// program that has the model.
std::vector<LabelSpec> LabelsOfColumns(const DataSpec& data) {
  std::vector<LabelSpec> labels;
  for (const ColumnSpec& column : data.columns) {
    if (column.type != ColumnType::kLabel) continue;
    const auto classes = static_cast<uint32_t>(column.classes.size());
    labels.push_back({column.name, classes > 0 ? classes : kLabelsAnyNumber});
  }
  if (labels.empty()) labels.push_back({"", kLabelsAnyNumber});
  if (labels.size() == 1) labels[0].name.clear();
  return labels;
}

// Returns the floats of all tensors of the layers for which `counts` holds, in whole chunks.
uint64_t FloatsOfLayers(const Job& job, const std::function<bool(const LayerSpec&)>& counts) {
  if (job.model.layers.empty()) return 0;
  const GraphShape shape = ShapeOfChecked(job);
  uint64_t chunks = 0;
  for (size_t i = 0; i < shape.nodes.size(); ++i) {
    if (!counts(job.model.layers[i])) continue;
    for (const LayerShape::Tensor& tensor : shape.nodes[i].shape.tensors) {
      chunks += (tensor.size() + kDenseChunkFloats - 1) / kDenseChunkFloats;
    }
  }
  return chunks * kDenseChunkFloats;
}

}  // namespace

std::vector<GraphProblem> MeasureGraph(const ModelSpec& model, const std::vector<TableSpec>& tables,
                                       const FeatureNames& features, GraphShape* graph) {
  return GraphWalk(model, tables, features, graph).Run();
}

std::vector<GraphProblem> CheckGraph(const ModelSpec& model, const std::vector<TableSpec>& tables,
                                     const FeatureNames& features) {
  std::vector<GraphProblem> problems;
  CheckTables(tables, &problems);
  if (!problems.empty() || model.type == kTablesType) return problems;
  GraphShape graph;
  problems = MeasureGraph(model, tables, features, &graph);
  if (problems.empty()) CheckUnused(model, tables, graph, &problems);
  return problems;
}

std::vector<AveragedTensor> AveragedTensors(const GraphShape& graph) {
  std::vector<AveragedTensor> averaged;
  uint32_t number = 0;
  for (const GraphShape::Node& node : graph.nodes) {
    for (const LayerShape::Tensor& tensor : node.shape.tensors) {
      if (tensor.averaged != 0) averaged.push_back({number, tensor.averaged});
      ++number;
    }
  }
  return averaged;
}

TableSpec DenseTable(const OptimizerSpec& optimizer) {
  const bool whole_tensors = RecordOf(optimizer).whole_tensors;
  return {"dense",   kDenseChunkFloats,
          optimizer, {InitKind::kZeros, 0},
          true,      whole_tensors ? ShardBy::kGroup : ShardBy::kKey};
}

std::vector<LabelSpec> LabelsOf(const Job& job) {
  if (IsTablesJob(job)) return LabelsOfColumns(job.data);
  std::vector<LabelSpec> columns;
  for (const TaskSpec& task : TasksOf(job.model)) {
    LabelSpec& column = columns.emplace_back();
    column.name = task.label;
    if (task.loss == LossKind::kSquared) column.num_classes = kLabelsAnyNumber;
    if (task.loss == LossKind::kSoftmax) {
      column.num_classes = static_cast<uint32_t>(ShapeOfChecked(job).nodes.back().shape.width);
    }
  }
  return columns;
}

uint64_t DenseFloats(const Job& job) {
  return FloatsOfLayers(job, [](const LayerSpec&) { return true; });
}

uint64_t DenseFloatsAtServers(const Job& job) {
  return FloatsOfLayers(job, [&job](const LayerSpec& layer) { return AtServers(job, layer); });
}

}  // namespace hdps
