// What must hold in a graph of layers: names, inputs, widths.
#include <glog/logging.h>

#include <algorithm>
#include <map>
#include <set>

#include "common/base/nearest_name.h"
#include "common/job/model_zoo.h"

namespace hdps {

namespace {

// Walks the layers in order and keeps what is known of those before.
class GraphCheck {
 public:
  GraphCheck(const ModelSpec& model, const std::vector<TableSpec>& tables,
             const FeatureNames& features)
      : model_(model), tables_(tables), features_(features) {}

  // Width of the last layer; needs a graph without problems.
  uint64_t LogitsWidth() const { return known_.at(model_.layers.back().name).width; }
  uint64_t dense_floats() const { return dense_floats_; }

  std::vector<GraphProblem> Run() {
    CheckTables();
    for (layer_ = 0; layer_ < model_.layers.size() && problems_.empty(); ++layer_) {
      CheckLayer(model_.layers[layer_]);
    }
    if (problems_.empty()) CheckEnds();
    return problems_;
  }

 private:
  struct Known {
    const LayerSpec* layer;
    uint64_t width;
  };

  void Complain(const std::string& key, const std::string& problem) {
    problems_.push_back({"layers." + std::to_string(layer_) + "." + key, problem});
  }

  void CheckTables() {
    std::set<std::string> names;
    for (size_t t = 0; t < tables_.size(); ++t) {
      const TableSpec& table = tables_[t];
      const std::string place = "tables." + std::to_string(t) + ".";
      if (table.dense) continue;
      if (table.name.empty() || table.name == "dense" || !names.insert(table.name).second) {
        problems_.push_back({place + "name", "\"" + table.name +
                                                 "\" cannot name a table: names are not empty, "
                                                 "not \"dense\", and all different"});
      }
      if (RecordOf(table.optimizer.kind).whole_tensors) {
        problems_.push_back({place + "optimizer",
                             std::string(OptimizerName(table.optimizer.kind)) +
                                 " needs whole tensors and cannot update the rows of a table; use "
                                 "adamw or lazy_adam, or this one as dense_optimizer"});
      }
    }
  }

  void CheckLayer(const LayerSpec& layer) {
    if (layer.name.empty() || known_.contains(layer.name)) {
      return Complain("name", "\"" + layer.name +
                                  "\" cannot name a layer: names are not empty and all different");
    }
    std::vector<Known> inputs;
    for (const std::string& name : layer.inputs) {
      const auto found = known_.find(name);
      if (found == known_.end()) {
        return Complain("inputs",
                        "\"" + name + "\" is no layer before this one" + DidYouMean(name, names_));
      }
      used_.insert(name);
      inputs.push_back(found->second);
    }
    const uint64_t width = Width(layer, inputs);
    constexpr uint64_t kWidthMax = 1 << 20;
    if (problems_.empty() && width > kWidthMax) {
      Complain("kind", "this layer would be " + std::to_string(width) + " wide, at most " +
                           std::to_string(kWidthMax) + " is allowed");
    }
    if (problems_.empty()) CountTensors(layer, inputs);
    known_[layer.name] = {&layer, width};
    names_.push_back(layer.name);
  }

  void CountTensors(const LayerSpec& layer, const std::vector<Known>& inputs) {
    const auto add = [this](uint64_t floats) {
      dense_floats_ += (floats + kDenseChunkFloats - 1) / kDenseChunkFloats * kDenseChunkFloats;
    };
    if (layer.kind == LayerKind::kDense) {
      add(inputs[0].width * layer.units);
      add(layer.units);
    } else if (layer.kind == LayerKind::kBias) {
      add(inputs[0].width);
    } else if (layer.kind == LayerKind::kCross) {
      for (uint32_t level = 0; level < layer.units; ++level) {
        add(inputs[0].width * inputs[0].width);
        add(inputs[0].width);
      }
    }
  }

  // Columns of what the layer gives; complains where inputs do not fit it.
  uint64_t Width(const LayerSpec& layer, const std::vector<Known>& inputs) {
    if (!CheckInputCount(layer)) return 0;
    switch (layer.kind) {
      case LayerKind::kEmbedding:
        return EmbeddingWidth(layer);
      case LayerKind::kNumeric:
        if (features_.numeric.empty()) Complain("kind", "the data has no numeric columns");
        return features_.numeric.size();
      case LayerKind::kConcat: {
        uint64_t width = 0;
        for (const Known& input : inputs) width += input.width;
        return width;
      }
      case LayerKind::kSum:
        for (const Known& input : inputs) {
          if (input.width != inputs[0].width) {
            Complain("inputs", Shown(inputs[0]) + " and " + Shown(input) +
                                   " cannot be added: all must be of one width");
          }
        }
        return inputs[0].width;
      case LayerKind::kDense:
        CheckUnits(layer);
        return layer.units;
      case LayerKind::kCross:
        CheckUnits(layer);
        return inputs[0].width;
      case LayerKind::kBias:
        return inputs[0].width;
      case LayerKind::kFm:
        CheckEmbedding(inputs[0]);
        return 1;
      case LayerKind::kDot:
        return DotWidth(inputs);
    }
    return 0;
  }

  bool CheckInputCount(const LayerSpec& layer) {
    struct Count {
      size_t min, max;
    };
    constexpr size_t kMany = 1024;
    const auto allowed = [&layer]() -> Count {
      switch (layer.kind) {
        case LayerKind::kEmbedding:
        case LayerKind::kNumeric:
          return {0, 0};
        case LayerKind::kConcat:
        case LayerKind::kSum:
          return {1, kMany};
        case LayerKind::kDot:
          return {1, 2};
        default:
          return {1, 1};
      }
    }();
    const size_t count = layer.inputs.size();
    if (count >= allowed.min && count <= allowed.max) return true;
    std::string wanted = std::to_string(allowed.min);
    if (allowed.max == kMany) wanted += " or more";
    if (allowed.max == 2) wanted += " or 2";
    Complain("inputs", "\"" + layer.name + "\" has " + std::to_string(count) +
                           " inputs, and layers of its kind take " + wanted);
    return false;
  }

  uint64_t EmbeddingWidth(const LayerSpec& layer) {
    std::vector<std::string> names;
    for (const TableSpec& table : tables_) {
      if (!table.dense) names.push_back(table.name);
    }
    const auto at = std::find(names.begin(), names.end(), layer.table);
    if (at == names.end()) {
      Complain("table",
               "\"" + layer.table + "\" is none of model.tables" + DidYouMean(layer.table, names));
      return 0;
    }
    used_tables_.insert(layer.table);
    std::set<std::string> seen;
    for (const std::string& name : layer.features) {
      const auto& known = features_.sparse;
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        Complain("features",
                 "\"" + name + "\" is no sparse feature of the data" + DidYouMean(name, known));
      } else if (!seen.insert(name).second) {
        Complain("features", "\"" + name + "\" is given twice");
      }
    }
    if (features_.sparse.empty()) Complain("kind", "the data has no sparse features");
    const uint32_t dim = tables_[static_cast<size_t>(at - names.begin())].dim;
    const size_t count = layer.features.empty() ? features_.sparse.size() : layer.features.size();
    return layer.combine == Combine::kSum ? dim : uint64_t{dim} * count;
  }

  void CheckUnits(const LayerSpec& layer) {
    if (layer.units == 0) Complain("units", "\"" + layer.name + "\" needs units of at least 1");
  }

  void CheckEmbedding(const Known& input) {
    if (input.layer->kind != LayerKind::kEmbedding || input.layer->combine != Combine::kConcat) {
      Complain("inputs", Shown(input) + " is not an embedding with combine = concat");
    }
  }

  // Pairs of the embedded features and, if there is one, the dense vector.
  uint64_t DotWidth(const std::vector<Known>& inputs) {
    CheckEmbedding(inputs[0]);
    if (!problems_.empty()) return 0;
    const auto table = std::find_if(tables_.begin(), tables_.end(), [&](const TableSpec& spec) {
      return spec.name == inputs[0].layer->table;
    });
    uint64_t vectors = inputs[0].width / table->dim;
    if (inputs.size() == 2) {
      if (inputs[1].width != table->dim) {
        Complain("inputs", Shown(inputs[1]) + " has to be as wide as a row of \"" + table->name +
                               "\", " + std::to_string(table->dim));
      }
      ++vectors;
    }
    if (vectors < 2) Complain("inputs", "dot products need at least two vectors");
    return vectors * (vectors - 1) / 2;
  }

  void CheckEnds() {
    if (model_.layers.empty()) {
      problems_.push_back({"layers", "a model needs at least one layer"});
      return;
    }
    for (layer_ = 0; layer_ + 1 < model_.layers.size(); ++layer_) {
      if (!used_.contains(model_.layers[layer_].name)) {
        return Complain("name", "\"" + model_.layers[layer_].name + "\" is used by no layer");
      }
    }
    const Known& last = known_[model_.layers.back().name];
    const bool softmax = model_.loss == LossKind::kSoftmax;
    if (softmax ? last.width < 2 : last.width != 1) {
      Complain("units", "the last layer, " + Shown(last) + ", has to be " +
                            (softmax ? "at least 2 wide under softmax" : "1 wide under logloss"));
    }
    for (size_t t = 0; t < tables_.size(); ++t) {
      if (tables_[t].dense || used_tables_.contains(tables_[t].name)) continue;
      problems_.push_back({"tables." + std::to_string(t) + ".name",
                           "\"" + tables_[t].name + "\" is used by no layer"});
    }
  }

  static std::string Shown(const Known& known) {
    return "\"" + known.layer->name + "\" (width " + std::to_string(known.width) + ")";
  }

  const ModelSpec& model_;
  const std::vector<TableSpec>& tables_;
  const FeatureNames& features_;
  size_t layer_ = 0;
  uint64_t dense_floats_ = 0;
  std::map<std::string, Known> known_;
  std::vector<std::string> names_;
  std::set<std::string> used_, used_tables_;
  std::vector<GraphProblem> problems_;
};

}  // namespace

std::vector<GraphProblem> CheckGraph(const ModelSpec& model, const std::vector<TableSpec>& tables,
                                     const FeatureNames& features) {
  return GraphCheck(model, tables, features).Run();
}

uint32_t NumClasses(const Job& job) {
  if (job.model.loss == LossKind::kLogloss) return 2;
  const FeatureNames features = FeaturesOf(job.data);
  GraphCheck graph(job.model, job.tables, features);
  const std::vector<GraphProblem> problems = graph.Run();
  CHECK(problems.empty()) << problems[0].place << ": " << problems[0].problem;
  return static_cast<uint32_t>(graph.LogitsWidth());
}

uint64_t DenseFloats(const Job& job) {
  if (job.model.layers.empty()) return 0;
  const FeatureNames features = FeaturesOf(job.data);
  GraphCheck graph(job.model, job.tables, features);
  const std::vector<GraphProblem> problems = graph.Run();
  CHECK(problems.empty()) << problems[0].place << ": " << problems[0].problem;
  return graph.dense_floats();
}

}  // namespace hdps
