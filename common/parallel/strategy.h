// How the layers of a model lie over the workers: what a person writes, a file keeps, a search
// finds, and the workers carry out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/parallel/layout.h"

namespace hdps {

// Into how many parts a layer's work is cut. Their product divides the number of workers; what is
// left of it are copies, which compute the same. A rank is, from its highest digit on, its part of
// the examples, of the inputs, of the columns, and its copy.
struct LayerSplit {
  uint32_t examples = 1;  // Parts of the rows of a step.
  uint32_t inputs = 1;    // Of a dense layer: parts of its inputs, which give summands.
  uint32_t columns = 1;   // Parts of the output's columns; of an embedding: of its features.
  uint64_t product() const { return uint64_t{examples} * inputs * columns; }
  friend bool operator==(const LayerSplit&, const LayerSplit&) = default;
};

// What a kind of layer can be cut into. A layer record says it.
enum class LayerCut : uint8_t {
  kOwnRows,      // Examples, into as many parts as there are workers: it looks at all examples of a
                 // worker's part, or draws for each.
  kExamples,     // Examples.
  kColumns,      // Examples, columns: every column on its own, of all inputs alike.
  kMatrix,       // Examples, inputs, columns.
  kFeatures,     // Examples or features, into as many parts as there are workers.
  kFeatureSums,  // Likewise; the features are added up, so parts of them give summands.
};

// How the matrices of a layer lie. An input that is whole where columns are made gets a summand of
// its gradient from each. A dense layer with parts of its inputs gives summands; they are added up
// inside of it, before bias and activation, each rank along that axis taking a part of the rows.
struct LayerLayouts {
  Layout input, output;                    // All inputs lie alike.
  Layout input_gradient, output_gradient;  // As it gives, and as it takes them.
  // What the product gives, and how it takes its gradient. As above where inputs are not cut.
  Layout product, product_gradient;
};
LayerLayouts LayoutsOf(LayerCut cut, const LayerSplit& split, uint32_t workers);

// Everything whole but the examples.
inline LayerSplit OwnRowsSplit(uint32_t workers) { return {.examples = workers}; }

// Invariant: one entry a layer, in the order of the job's layers.
struct Strategy {
  uint32_t workers = 1;
  std::vector<LayerSplit> layers;

  static Strategy DataParallel(uint32_t workers, size_t num_layers) {
    return {workers, std::vector<LayerSplit>(num_layers, OwnRowsSplit(workers))};
  }
  // Every layer has the rows of its own worker: nothing is converted.
  bool data_parallel() const;
  friend bool operator==(const Strategy&, const Strategy&) = default;
};

}  // namespace hdps
