// Rows of data as a model takes them, with the outputs of hdps: what an exported model is checked
// against.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "tools/export/export.h"
#include "worker/data/batch.h"

namespace hdps {

// Keys of a feature, [rows, width] each: a row's values from the front, then key 0 of weight 0.
struct CheckFeature {
  std::string name;
  uint32_t width = 0;
  std::vector<Key> keys;
  std::vector<float> weights;
};

// Invariant: a key without a row of the checkpoint counts as zeros in `scores`, as it does in
// whatever is exported.
struct CheckRows {
  uint32_t rows = 0;                   // At most kCheckRows.
  bool drawn = false;                  // The values are not those of data.
  std::vector<CheckFeature> features;  // In the order of FeaturesOf(data).sparse.
  uint32_t num_numeric = 0;
  std::vector<float> numeric;  // [rows, num_numeric]
  uint32_t scores_a_row = 0;
  // [rows, scores_a_row], laid out as by ModelLoss::Score: logits of each task under logloss,
  // probabilities of classes under softmax, and so on.
  std::vector<float> scores;
};
inline constexpr uint32_t kCheckRows = 1000;
inline constexpr const char* kCheckFile = "check.safetensors";

// Appends the batch's first rows as long as there are fewer than kCheckRows; `scores` are those of
// the whole batch.
void AddCheckRows(const Job& job, const Batch& batch, std::span<const float> scores,
                  CheckRows* check);

// Writes `check.safetensors` into the task's folder: for each feature NAME, I64 [rows, width], and
// NAME.weight, F32; numeric, F32 [rows, columns]; and scores, F32 [rows, scores a row].
Status WriteCheckRows(const ExportTask& task, const CheckRows& check);

}  // namespace hdps
