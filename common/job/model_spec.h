// A model: a graph of layers over tables, and its loss.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/enum_words.h"
#include "common/job/activation.h"

namespace hdps {

enum class Pooling : uint8_t { kSum, kMean, kMax };
constexpr auto WordsOf(Pooling) {
  using enum Pooling;
  return EnumWords(kSum, "sum", kMean, "mean", kMax, "max");
}
enum class Combine : uint8_t { kConcat, kSum };
constexpr auto WordsOf(Combine) {
  using enum Combine;
  return EnumWords(kConcat, "concat", kSum, "sum");
}

struct JobRegistry;  // job_registry.h

// One layer as the job gives it. Which of the fields count is said by the record of its kind.
struct LayerSpec {
  std::string name;
  std::string kind = "dense";          // The word of its record.
  std::vector<std::string> inputs;     // Names of layers before this one.
  std::string table;                   // embedding
  std::vector<std::string> features;   // embedding; empty = all sparse features.
  Pooling pooling = Pooling::kSum;     // embedding: of the keys of one feature.
  Combine combine = Combine::kConcat;  // embedding: of the features.
  uint32_t units = 0;                  // dense: outputs. cross: number of layers.
  Activation activation = Activation::kNone;
  std::map<std::string, double> numbers;     // Settings of its kind alone: see LayerNumber.
  std::map<std::string, std::string> words;  // Likewise: see LayerWord.
  // How it lies over the workers, one tuple an input and weight, or one for all; empty: not said.
  std::vector<std::vector<uint32_t>> shard = {};
  int32_t fusion = -1;  // Gradients of layers with the same id travel together; 0: alone; -1: any.
  std::string device = "auto";      // auto | cpu | cuda: where it is computed; auto: as the model.
  bool layerwise_parallel = false;  // Every worker has parameters of its own, which never meet.
};

// kBpr: pairs of a positive and a negative example of one group. kSampledSoftmax: the items of the
// batch's other examples are the negatives.
enum class LossKind : uint8_t { kLogloss, kSoftmax, kSquared, kBpr, kSampledSoftmax };
constexpr auto WordsOf(LossKind) {
  using enum LossKind;
  return EnumWords(kLogloss, "logloss", kSoftmax, "softmax", kSquared, "squared_error", kBpr, "bpr",
                   kSampledSoftmax, "sampled_softmax");
}

// One of several things a model learns at once: a label column, and the logit of the same place.
struct TaskSpec {
  std::string label;                   // Name of the column.
  LossKind loss = LossKind::kLogloss;  // kLogloss or kSquared.
  double weight = 1;                   // Of its loss in the sum.
  double positive_weight = 1;          // As ModelSpec has it.
};

// How a dense layer that alone reads an embedding multiplies: every example's pooled rows, or each
// distinct row of the batch once. kAuto: what a cost rule says of the batch; unique rows on CPUs
// only.
enum class FirstLayer : uint8_t { kAuto, kPlain, kUniqueRows };
constexpr auto WordsOf(FirstLayer) {
  using enum FirstLayer;
  return EnumWords(kAuto, "auto", kPlain, "plain", kUniqueRows, "unique_rows");
}

// Of the numbers that dense layers multiply; sums, weights and optimizers are in fp32.
enum class Precision : uint8_t { kFp32, kTf32, kBf16 };
constexpr auto WordsOf(Precision) {
  using enum Precision;
  return EnumWords(kFp32, "fp32", kTf32, "tf32", kBf16, "bf16");
}

// A graph of layers; the last one gives the logits, [n, 1] for logloss, [n, classes] for softmax.
struct ModelSpec {
  std::string type = "wide_deep";  // The recipe the graph was built from; else "graph".
  std::vector<LayerSpec> layers;
  LossKind loss = LossKind::kLogloss;
  double positive_weight = 1;         // kLogloss: how much an example with label 1 counts.
  std::vector<TaskSpec> tasks;        // Empty: one, by `loss`.
  std::string device = "auto";        // auto | cpu | cuda: where the dense layers are computed.
  std::string dense_target = "auto";  // auto | cpu | cuda: where dense weights are updated.
  FirstLayer first_layer = FirstLayer::kAuto;
  Precision precision = Precision::kFp32;
  // What the kinds of layers and optimizers mean; null: BuiltInRegistry().
  std::shared_ptr<const JobRegistry> registry;
};

}  // namespace hdps
