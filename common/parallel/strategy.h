// A strategy: how the layers of a model are split over the workers. A person writes it, a file
// keeps it or a search finds it, and the workers execute it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/parallel/layout.h"

namespace hdps {

// The numbers of parts into which a layer's work is cut. Their product divides the number of
// workers; the remaining factor is the number of copies that compute the same. The digits of a rank
// are, from the highest: part of the examples, of the inputs, of the columns, and copy.
struct LayerSplit {
  uint32_t examples = 1;  // Parts of the rows of a step.
  uint32_t inputs = 1;    // For a dense layer: parts of its inputs, which give summands.
  uint32_t columns = 1;   // Parts of the output's columns; for an embedding, of its features.
  uint64_t product() const { return uint64_t{examples} * inputs * columns; }
  friend bool operator==(const LayerSplit&, const LayerSplit&) = default;
};

// The ways in which a kind of layer can be cut, as its record says.
enum class LayerCut : uint8_t {
  // Examples, into as many parts as workers: the layer uses all examples of a worker's part, or
  // draws random numbers for each.
  kOwnRows,
  kExamples,     // Examples.
  kColumns,      // Examples and columns: each column is computed alone, from all inputs.
  kMatrix,       // Examples, inputs, columns.
  kFeatures,     // Examples or features, into as many parts as there are workers.
  kFeatureSums,  // Like kFeatures; the features are summed, so parts of them give summands.
  kNumbers,      // Like kFeatures; the features are the numeric columns.
};

// The layouts of the matrices of a layer. If the columns are cut and an input is whole, each rank
// computes a summand of the input's gradient. A dense layer with cut inputs computes summands. They
// are added inside the layer, before bias and activation, and each rank along that axis takes a
// part of the rows.
struct LayerLayouts {
  Layout input, output;                    // All inputs have the same layout.
  Layout input_gradient, output_gradient;  // As produced, and as taken.
  // Layouts of the product and of its gradient; as above if inputs are not cut.
  Layout product, product_gradient;
};
LayerLayouts LayoutsOf(LayerCut cut, const LayerSplit& split, uint32_t workers);

// Only the examples are cut.
inline LayerSplit OwnRowsSplit(uint32_t workers) { return {.examples = workers}; }

// Invariant: there is one entry for each layer, in the order of the job's layers.
struct Strategy {
  uint32_t workers = 1;
  std::vector<LayerSplit> layers;

  static Strategy DataParallel(uint32_t workers, size_t num_layers) {
    return {workers, std::vector<LayerSplit>(num_layers, OwnRowsSplit(workers))};
  }
  // Is true if every layer has the rows of its own worker, so nothing is converted.
  bool data_parallel() const;
  friend bool operator==(const Strategy&, const Strategy&) = default;
};

}  // namespace hdps
