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

// One of several tasks that a model learns together: a label column, and the logit at the same
// index.
struct TaskSpec {
  std::string label;                   // Name of the column.
  LossKind loss = LossKind::kLogloss;  // kLogloss or kSquared.
  double weight = 1;                   // Weight of its loss in the sum.
  double positive_weight = 1;          // As in ModelSpec.
};

// The way of computing a dense layer that is the only reader of an embedding. kPlain multiplies
// every example's pooled rows, kUniqueRows each distinct row of the batch once. kAuto follows a
// cost estimate for the batch, and multiplies unique rows only on CPUs.
enum class FirstLayer : uint8_t { kAuto, kPlain, kUniqueRows };
constexpr auto WordsOf(FirstLayer) {
  using enum FirstLayer;
  return EnumWords(kAuto, "auto", kPlain, "plain", kUniqueRows, "unique_rows");
}

// A graph of layers. The last one gives the logits, [n, 1] for logloss, [n, classes] for softmax.
struct ModelSpec {
  std::string type = "wide_deep";  // The recipe that built the graph, or "graph".
  std::vector<LayerSpec> layers;
  LossKind loss = LossKind::kLogloss;
  double positive_weight = 1;         // kLogloss: weight of an example with label 1.
  std::vector<TaskSpec> tasks;        // Empty for a single task with `loss`.
  std::string device = "auto";        // auto | cpu | cuda: where the dense layers are computed.
  std::string dense_target = "auto";  // auto | cpu | cuda: where dense weights are updated.
  FirstLayer first_layer = FirstLayer::kAuto;
  Precision precision = Precision::kFp32;
  // Explains the kinds of layers and optimizers; null for BuiltInRegistry().
  std::shared_ptr<const JobRegistry> registry;
};

}  // namespace hdps
