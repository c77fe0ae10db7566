// A graph of layers as its records measure it, and what is wrong with one.
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
