// What a strategy depends on of a job: its layers as a graph, in numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/parallel/strategy.h"

namespace hdps {

struct Job;

struct LayerFacts {
  std::string name, kind;
  LayerCut cut = LayerCut::kExamples;
  std::vector<uint32_t> inputs;  // Places before this one.
  uint64_t width = 0;            // Columns of the output.
  uint64_t input_width = 0;      // Of the first input; 0 without one.
  bool learns = false;           // A gradient is wanted here or below.
  double tensor_floats = 0;      // Of all its tensors.
  double flops = 0;              // Of the products of one example, forward.
  std::string table;             // Of a layer that reads rows.
  uint64_t features = 0, dim = 0;
};

struct JobFacts {
  std::vector<LayerFacts> layers;
  uint32_t batch = 0;       // Rows of a step of all workers.
  double state_floats = 0;  // Of the dense optimizer, a weight.
};

// Requires: the job's graph has no problems.
JobFacts FactsOf(const Job& job);

// Equal for two models whose layers have the same names, kinds, inputs and sizes.
uint64_t GraphHash(const JobFacts& facts);

// The place of a layer by its name; -1: there is none.
int PlaceOf(const JobFacts& facts, const std::string& name);

// Why the layer cannot be split so among so many workers, with the matrix, its extent and the
// parts; empty: it can.
std::string WhyNotSplit(const LayerFacts& layer, const LayerSplit& split, uint32_t workers);

// All splits that the layer can have, in a fixed order; with `all_workers` those that leave no
// copies, as far as there are such. Layers that read what a worker's reader gives keep its rows.
std::vector<LayerSplit> SplitsOf(const LayerFacts& layer, uint32_t workers, bool all_workers);

// "examples 2 x inputs 2"; "copies 4" where nothing is cut.
std::string ShowSplit(const LayerSplit& split, uint32_t workers);

}  // namespace hdps
