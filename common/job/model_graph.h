// Measures and checks a graph of layers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/job/layers/layer_record.h"

namespace hdps {

struct AveragedTensor;
struct FeatureNames;
struct Job;
struct ModelSpec;
struct OptimizerSpec;
struct TableSpec;

// Returns the table that holds the chunks of all dense tensors.
TableSpec DenseTable(const OptimizerSpec& optimizer);

// Returns the floats of all dense tensors of the model, each padded to whole chunks; 0 without
// layers. Requires: its graph has no problems.
uint64_t DenseFloats(const Job& job);
// The same of those tensors that servers keep and update: see AtServers().
uint64_t DenseFloatsAtServers(const Job& job);

// A problem of a graph. `place` is the dotted path below "model" ("layers.3.inputs").
struct GraphProblem {
  std::string place;
  std::string problem;
};

// A valid graph of layers with the shapes that their records give.
struct GraphShape {
  struct Node {
    std::vector<uint32_t> inputs;  // Indices of earlier layers.
    LayerShape shape;
  };
  std::vector<Node> nodes;  // In the order of the layers.
};

// Visits the layers in order and measures each: names, numbers of inputs, widths, the last layer.
// Stops at the first problem.
std::vector<GraphProblem> MeasureGraph(const ModelSpec& model, const std::vector<TableSpec>& tables,
                                       const FeatureNames& features, GraphShape* graph);

// Returns the tensors of a measured graph that are running averages, by their numbers in the flat
// array.
std::vector<AveragedTensor> AveragedTensors(const GraphShape& graph);

// Does MeasureGraph() and the other checks of a job file: tables have valid names, and every layer
// and table is used.
std::vector<GraphProblem> CheckGraph(const ModelSpec& model, const std::vector<TableSpec>& tables,
                                     const FeatureNames& features);

}  // namespace hdps
