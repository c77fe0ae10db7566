// Measures a job's graph for planning, and lists the splits of its layers.
#include "common/planning/layer_facts.h"

#include <glog/logging.h>

#include <algorithm>

#include "common/base/hash.h"
#include "common/job/job_facts.h"
#include "common/job/job_registry.h"
#include "common/job/job_spec.h"
#include "common/job/layer_shard.h"
#include "common/job/model_graph.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"

namespace hdps {
namespace {

LayerFacts MeasureLayer(const Job& job, const GraphShape& graph, size_t place) {
  const LayerSpec& spec = job.model.layers[place];
  const GraphShape::Node& node = graph.nodes[place];
  LayerFacts facts;
  facts.name = spec.name;
  facts.kind = spec.kind;
  facts.cut = CutOfLayer(spec, *RegistryOf(job.model).layers.Find(spec.kind));
  facts.inputs = node.inputs;
  facts.width = node.shape.width;
  if (!node.inputs.empty()) facts.input_width = graph.nodes[node.inputs[0]].shape.width;
  facts.learns = node.shape.learns;
  facts.at_servers = AtServers(job, spec);
  for (const LayerShape::Tensor& tensor : node.shape.tensors) {
    const auto size = static_cast<double>(tensor.size());
    facts.tensor_floats += size;
    if (tensor.shape.size() == 2) facts.flops += 2 * size * static_cast<double>(tensor.uses);
  }
  if (!ReadsRows(job.model, spec)) return facts;
  facts.table = spec.table;
  facts.features = spec.features.empty() ? FeaturesOf(job.data).sparse.size()  //
                                         : spec.features.size();
  const auto table = std::ranges::find(job.tables, spec.table, &TableSpec::name);
  if (table != job.tables.end()) facts.dim = table->dim;
  return facts;
}

bool ReadsFeatures(const LayerFacts& layer) {
  return layer.cut == LayerCut::kFeatures || layer.cut == LayerCut::kFeatureSums ||
         layer.cut == LayerCut::kNumbers;
}

std::string TooMany(uint64_t parts, uint64_t extent, const std::string& of) {
  return std::to_string(parts) + " parts of the " + std::to_string(extent) + " " + of +
         "; give at most " + std::to_string(extent);
}

// Returns why the parts do not fit the matrices of the layer.
std::string WhyNotExtents(const LayerFacts& layer, const LayerSplit& split) {
  const bool matrix = layer.cut == LayerCut::kMatrix;
  if (split.inputs > 1 && !matrix) {
    return std::to_string(split.inputs) + " parts of the inputs, but only a dense layer has them";
  }
  const std::string weight = layer.name + ".weight [" + std::to_string(layer.input_width) + ", " +
                             std::to_string(layer.width) + "]";
  if (matrix && split.inputs > layer.input_width) {
    return TooMany(split.inputs, layer.input_width, "rows of " + weight);
  }
  if (matrix && split.columns > layer.width) {
    return TooMany(split.columns, layer.width, "columns of " + weight);
  }
  const bool numbers = layer.cut == LayerCut::kNumbers;
  if (ReadsFeatures(layer) && !numbers && split.columns > layer.features) {
    return TooMany(split.columns, layer.features, "features of \"" + layer.name + "\"");
  }
  if ((layer.cut == LayerCut::kColumns || numbers) && split.columns > layer.width) {
    return TooMany(split.columns, layer.width, "columns of \"" + layer.name + "\"");
  }
  return "";
}

}  // namespace

JobFacts FactsOf(const Job& job) {
  GraphShape graph;
  const auto problems = MeasureGraph(job.model, job.tables, FeaturesOf(job.data), &graph);
  CHECK(problems.empty()) << problems[0].place << ": " << problems[0].problem;
  JobFacts facts;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    facts.layers.push_back(MeasureLayer(job, graph, i));
  }
  facts.batch = job.train.batch_size;
  for (const TableSpec& table : job.tables) {
    if (!table.dense) continue;
    const auto floats = static_cast<double>(RecordOf(table.optimizer).StateFloats(table.dim));
    facts.state_floats = floats / table.dim;
  }
  return facts;
}

uint64_t GraphHash(const JobFacts& facts) {
  std::string text;
  for (const LayerFacts& layer : facts.layers) {
    text += layer.name + "\n" + layer.kind + " " + std::to_string(layer.width) + " " +
            std::to_string(layer.tensor_floats) + " " + layer.table + " " +
            std::to_string(layer.features);
    for (const uint32_t input : layer.inputs) text += " " + std::to_string(input);
    text += "\n";
  }
  return HashString(text);
}

int PlaceOf(const JobFacts& facts, const std::string& name) {
  const auto found = std::ranges::find(facts.layers, name, &LayerFacts::name);
  return found == facts.layers.end() ? -1 : static_cast<int>(found - facts.layers.begin());
}

std::string WhyNotSplit(const LayerFacts& layer, const LayerSplit& split, uint32_t workers) {
  if (split == OwnRowsSplit(workers)) return "";
  const uint64_t product = split.product();
  const std::string parts = std::to_string(split.examples) + " x " + std::to_string(split.inputs) +
                            " x " + std::to_string(split.columns);
  if (product > workers) {
    return parts + " = " + std::to_string(product) + " parts are more than the " +
           std::to_string(workers) + " workers; give fewer, or start more workers";
  }
  if (workers % product != 0) {
    return parts + " = " + std::to_string(product) + " parts do not divide the " +
           std::to_string(workers) + " workers; take a number of parts that does";
  }
  if (layer.cut == LayerCut::kOwnRows) {
    return "a layer of kind " + layer.kind + " cannot be cut so: each worker computes it on its " +
           "own rows; give " + std::to_string(workers) + " parts of the examples";
  }
  if (split.columns > 1 && layer.cut == LayerCut::kExamples) {
    return std::to_string(split.columns) + " parts of the columns of a layer of kind " +
           layer.kind + ", of which only the examples can be cut";
  }
  if (std::string why = WhyNotExtents(layer, split); !why.empty()) return why;
  if (ReadsFeatures(layer) && split.columns != workers) {
    const bool numbers = layer.cut == LayerCut::kNumbers;
    return parts + " parts of " + (numbers ? "numeric columns" : "an embedding") + " on " +
           std::to_string(workers) + " workers; either " +
           (numbers ? "the examples or the columns" : "its examples or its features") +
           " are cut, into as many parts as there are workers";
  }
  return "";
}

std::vector<LayerSplit> SplitsOf(const LayerFacts& layer, uint32_t workers, bool all_workers) {
  std::vector<LayerSplit> splits = {OwnRowsSplit(workers)};
  const bool given = layer.inputs.empty() && layer.table.empty();
  if (given || layer.cut == LayerCut::kOwnRows) return splits;
  for (uint32_t a = workers; a >= 1; --a) {
    if (workers % a != 0) continue;
    for (uint32_t b = 1; a * b <= workers; ++b) {
      if (workers % (a * b) != 0) continue;
      for (uint32_t c = 1; a * b * c <= workers; ++c) {
        const LayerSplit split = {a, b, c};
        if (all_workers && split.product() != workers) continue;
        if (split == splits[0] || !WhyNotSplit(layer, split, workers).empty()) continue;
        splits.push_back(split);
      }
    }
  }
  return splits;
}

std::string ShowSplit(const LayerSplit& split, uint32_t workers) {
  std::string text;
  const auto add = [&text](const char* what, uint64_t parts) {
    if (parts > 1) text += (text.empty() ? "" : " x ") + (what + (" " + std::to_string(parts)));
  };
  add("examples", split.examples);
  add("inputs", split.inputs);
  add("columns", split.columns);
  add("copies", workers / split.product());
  return text.empty() ? "whole" : text;
}

}  // namespace hdps
