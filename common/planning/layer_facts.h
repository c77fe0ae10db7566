// The facts about a job on which a strategy depends: its layers as a graph, in numbers.
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
  std::vector<uint32_t> inputs;  // Indices of earlier layers.
  uint64_t width = 0;            // Columns of the output.
  uint64_t input_width = 0;      // Width of the first input; 0 without one.
  bool learns = false;           // A gradient is needed here or below.
  double tensor_floats = 0;      // Size of all its tensors.
  bool at_servers = false;       // Servers keep and update its tensors, which are whole there.
  double flops = 0;              // Operations of the products of one example, forward.
  std::string table;             // Set if the layer reads rows.
  uint64_t features = 0, dim = 0;
};

struct JobFacts {
  std::vector<LayerFacts> layers;
  uint32_t batch = 0;       // Rows of a step, over all workers.
  double state_floats = 0;  // State of the dense optimizer for each weight.
};

// Requires: the job's graph has no problems.
JobFacts FactsOf(const Job& job);

// Returns a hash that is equal for two models whose layers have the same names, kinds, inputs and
// sizes.
uint64_t GraphHash(const JobFacts& facts);

// Returns the index of the layer with this name; -1 if there is none.
int PlaceOf(const JobFacts& facts, const std::string& name);

// Returns why the layer cannot be split this way among `workers`, with the matrix, its extent and
// the parts; empty if it can.
std::string WhyNotSplit(const LayerFacts& layer, const LayerSplit& split, uint32_t workers);

// Returns all splits that the layer can have, in a fixed order. With `all_workers`, only those
// without copies, if there are any. A layer whose input comes from the worker's reader keeps the
// reader's rows.
std::vector<LayerSplit> SplitsOf(const LayerFacts& layer, uint32_t workers, bool all_workers);

// Returns "examples 2 x inputs 2", or "copies 4" if nothing is cut.
std::string ShowSplit(const LayerSplit& split, uint32_t workers);

}  // namespace hdps
