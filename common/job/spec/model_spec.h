// A model: a graph of layers over tables, and its loss.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/enum_words.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/loss_kind.h"
#include "common/job/spec/precision.h"

namespace hdps {

struct JobRegistry;  // job_registry.h

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
