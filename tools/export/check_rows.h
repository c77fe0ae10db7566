// Rows of data as a model takes them, with the outputs of hdps: what an exported model is checked
// against.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "tools/export/export.h"
#include "tools/export/export_rows.h"
#include "worker/model/model.h"

namespace hdps {

// Keys of a feature, [rows, width] each: a row's values from the front, then key 0 of weight 0.
struct CheckFeature {
  std::string name;
  uint32_t width = 1;
  std::vector<Key> keys;
  std::vector<float> weights;
};

// Invariant: a key without a row of the checkpoint counts as zeros in `scores`, as it does in
// whatever is exported.
struct CheckRows {
  uint32_t rows = 0;
  bool drawn = false;  // The values were drawn at random, because there is no evaluation data.
  std::vector<CheckFeature> features;  // In the order of FeaturesOf(data).sparse.
  uint32_t num_numeric = 0;
  std::vector<float> numeric;  // [rows, num_numeric]
  // [rows, scores a row], laid out as by Model::Predict: logits of each task under logloss,
  // probabilities of classes under softmax, and so on.
  std::vector<float> scores;
};

// Writes `check.safetensors` into the task's folder: tensors NAME (I64 [rows, width]) and
// NAME.weight (F32) for each feature, numeric (F32 [rows, columns]) and scores.
Status WriteCheckRows(const ExportTask& task, const CheckRows& check);

}  // namespace hdps
