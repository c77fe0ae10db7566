// Scores one batch at a time on its own thread, by the rows of a checkpoint that many threads read.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/platform/executor.h"
#include "tools/scoring/checkpoint_model.h"
#include "worker/data/batch.h"
#include "worker/model/model.h"

namespace hdps {

// A model with what a pass of its own needs: the distinct keys of a batch and their rows.
//
// Invariant: rows and dense weights of a pass are of one step of the checkpoint. A row's score is a
// function of the row and the step.
class ScoringEngine {
 public:
  // `owns_model`: it makes a model of its own; else it takes that of `loaded`, which one engine
  // alone may use. Requires: `loaded` outlives the result.
  static Result<std::unique_ptr<ScoringEngine>> New(CheckpointModel& loaded, bool owns_model);

  // Scores a batch as Model::Predict does, and returns the sum of the losses. `unknown_keys`: also
  // finds which keys have a row. kInvalidArgument says what of the batch does not fit the model.
  Result<double> Score(const Batch& batch, bool unknown_keys = false);
  // Finds the distinct keys of a batch, and nothing else.
  void FindKeys(const Batch& batch) { finder_.Find(batch, &sets_); }

  // These return what the last pass found.
  std::vector<float>& scores() { return scores_; }
  Model& model() { return *model_; }
  Clock step() const { return step_; }
  const std::vector<KeySet>& sets() const { return sets_; }
  const std::vector<int>& table_sets() const { return finder_.table_keys(); }
  // [sets][unique]: whether the set's first table has a row of the key, if that was asked for.
  const std::vector<std::vector<uint8_t>>& has_row() const { return has_row_; }

 private:
  explicit ScoringEngine(CheckpointModel& loaded);
  void ReadRows(bool unknown_keys);
  // Gives the model the dense weights of the step. Requires: the rows are locked for reading.
  void BringDense();

  CheckpointModel& loaded_;
  std::unique_ptr<Model> own_;
  Model* model_ = nullptr;
  KeyFinder finder_;
  std::vector<KeySet> sets_;
  std::vector<std::vector<float>> rows_;  // [tables]
  std::vector<TableInput> inputs_;        // [tables]
  std::vector<std::vector<uint8_t>> has_row_;
  std::vector<float> scores_;
  Clock step_ = kNoClock;
};

}  // namespace hdps
