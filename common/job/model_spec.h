// A model: a graph of layers over tables, and its loss.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/enum_words.h"

namespace hdps {

enum class LayerKind : uint8_t {
  kEmbedding,  // [n, F * dim] pooled rows of the features, or [n, dim] with combine = sum.
  kNumeric,    // [n, numeric columns] as read.
  kConcat,     // inputs side by side
  kSum,        // elementwise; all inputs of one width
  kDense,      // x W + b, then activation
  kBias,       // x + b
  kFm,         // input [n, F * dim] of an embedding -> [n, 1] (Rendle 2010, as in DeepFM)
  kCross,      // DCN-v2 (Wang et al. 2021, eq. 1), `units` layers, full-rank W
  kDot,  // DLRM (Naumov et al. 2019): dot products of all pairs; inputs: embedding, dense vector
};
enum class Activation : uint8_t { kNone, kRelu };
enum class Pooling : uint8_t { kSum, kMean };
enum class Combine : uint8_t { kConcat, kSum };

struct LayerSpec {
  std::string name;
  LayerKind kind = LayerKind::kDense;
  std::vector<std::string> inputs;     // Names of layers before this one.
  std::string table;                   // kEmbedding
  std::vector<std::string> features;   // kEmbedding; empty = all sparse features.
  Pooling pooling = Pooling::kSum;     // kEmbedding: of the keys of one feature.
  Combine combine = Combine::kConcat;  // kEmbedding: of the features.
  uint32_t units = 0;                  // kDense: outputs. kCross: number of layers.
  Activation activation = Activation::kNone;
};

enum class LossKind : uint8_t { kLogloss, kSoftmax };
constexpr auto WordsOf(LossKind) {
  using enum LossKind;
  return EnumWords(kLogloss, "logloss", kSoftmax, "softmax");
}

// How a dense layer that alone reads an embedding multiplies: every example's pooled rows, or each
// distinct row of the batch once. kAuto: what a cost rule says of the batch; unique rows on CPUs
// only.
enum class FirstLayer : uint8_t { kAuto, kPlain, kUniqueRows };
constexpr auto WordsOf(FirstLayer) {
  using enum FirstLayer;
  return EnumWords(kAuto, "auto", kPlain, "plain", kUniqueRows, "unique_rows");
}

// A graph of layers; the last one gives the logits, [n, 1] for logloss, [n, classes] for softmax.
struct ModelSpec {
  std::string type = "wide_deep";  // The recipe the graph was built from; else "graph".
  std::vector<LayerSpec> layers;
  LossKind loss = LossKind::kLogloss;
  std::string device = "auto";  // auto | cpu | cuda: where the dense layers are computed.
  FirstLayer first_layer = FirstLayer::kAuto;
};

}  // namespace hdps
