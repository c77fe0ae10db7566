// The known models as graphs of layers, from the few numbers people want to set.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/job/job.h"
#include "common/job/layers/layer_record.h"

namespace hdps {

// The short form of a model: what a recipe makes tables and layers from.
struct ModelRecipe {
  uint32_t embedding_dim = 16;
  std::vector<uint32_t> hidden = {64, 32};
  std::vector<uint32_t> bottom_hidden = {64};  // dlrm
  uint32_t cross_layers = 3;                   // dcn_v2
  uint32_t classes = 1;                        // mlp
  std::vector<std::string> wide_features;      // Empty: all sparse features.
  std::vector<std::string> deep_features;
  bool numeric = true;  // The numeric columns take part (if there are any).
  OptimizerSpec wide_optimizer = WideOptimizer();
  OptimizerSpec deep_optimizer = DeepOptimizer();
  InitSpec wide_init = {InitKind::kZeros, 0};
  InitSpec embedding_init = {InitKind::kNormal, 0.01f};

  // As the published Wide&Deep recipes: FTRL on the wide part, lazy Adam on the deep table, Adam on
  // the dense layers.
  static OptimizerSpec WideOptimizer();
  static OptimizerSpec DeepOptimizer();
  static OptimizerSpec DenseOptimizer();
};

struct ModelGraph {
  std::vector<TableSpec> tables;  // Without the dense table.
  std::vector<LayerSpec> layers;
};

// The types that BuildModel knows: wide_deep, deepfm, ...
std::vector<std::string> RecipeTypes();

// kInvalidArgument when the data lacks what the recipe needs: sparse features, or numeric columns.
Result<ModelGraph> BuildModel(const std::string& type, const ModelRecipe& recipe,
                              const FeatureNames& features);

// The table of the chunks of all dense tensors.
TableSpec DenseTable(const OptimizerSpec& optimizer);

// Floats of all dense tensors of the job's model, each filled up to whole chunks; none without
// layers. Requires: its graph has no problems.
uint64_t DenseFloats(const Job& job);

// What is wrong with a graph. `place` is the dotted path below "model" ("layers.3.inputs").
struct GraphProblem {
  std::string place;
  std::string problem;
};

// A graph of layers that fits together, as its records measure it.
struct GraphShape {
  struct Node {
    std::vector<uint32_t> inputs;  // Places before this one.
    LayerShape shape;
  };
  std::vector<Node> nodes;  // In the order of the layers.
};

// Walks the layers in order and measures each: names, numbers of inputs, widths, the last layer.
// The first problem ends the walk.
std::vector<GraphProblem> MeasureGraph(const ModelSpec& model, const std::vector<TableSpec>& tables,
                                       const FeatureNames& features, GraphShape* graph);

// The tensors of a measured graph that are running averages, by their numbers in the flat array.
std::vector<AveragedTensor> AveragedTensors(const GraphShape& graph);

// MeasureGraph, and what a job file has to keep beyond it: tables are well named, and no layer or
// table is left unused.
std::vector<GraphProblem> CheckGraph(const ModelSpec& model, const std::vector<TableSpec>& tables,
                                     const FeatureNames& features);

}  // namespace hdps
