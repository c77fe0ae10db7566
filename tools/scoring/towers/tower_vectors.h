// Computes the vectors of a two_tower model's items, or of its users, by the model's own layers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/job_facts.h"
#include "common/platform/executor.h"
#include "tools/scoring/checkpoint_model.h"
#include "tools/scoring/unknown_count.h"
#include "worker/model/step_parts.h"

namespace hdps {

class LayerValues;

enum class Tower : uint8_t { kUser, kItem };

// Rows with the features of one tower as rows of the whole model.
class TowerRows {
 public:
  // kInvalidArgument if the job's model is not of the recipe two_tower. Requires: `job` outlives
  // the result.
  static Result<std::unique_ptr<TowerRows>> New(const Job& job, Tower tower);

  // Returns the features that the tower reads. Those that are no column of the job are derived.
  const FeatureNames& features() const { return features_; }
  // Sets `parts` to one part with the rows, without keys, and with zeros, where `rows` has nothing.
  // `names` are the features and numeric columns of `rows`, in their order; those that the tower
  // does not read may be missing. kInvalidArgument names one that it reads and that is missing.
  Status Assign(const Batch& rows, const FeatureNames& names, StepParts* parts);

 private:
  TowerRows(const Job& job, Tower tower);
  Result<Batch> WholeRows(const Batch& rows, const FeatureNames& names) const;

  const Job& job_;
  const FeatureNames all_;  // Those of the job.
  FeatureNames features_;
  KeyFinder finder_;
};

// Invariant: the product of a user's and an item's vector, plus ScoreBias(), is the score that
// Model::Predict gives to both in one row, up to the rounding of floats. An item's vector has the
// length 1, and a user's the length 1 / temperature. All vectors are of one step.
class TowerVectors {
 public:
  // kInvalidArgument if the job's model is not of the recipe two_tower. `counts_unknown`: unknown()
  // counts, which takes time and memory. `view`: of which rows they are; of kStaged for as long as
  // these can be read. Requires: `loaded` and `executor` outlive the result.
  static Result<std::unique_ptr<TowerVectors>> New(CheckpointModel& loaded, Tower tower,
                                                   Executor& executor, bool counts_unknown = true,
                                                   RowView view = RowView::kPublished);

  ~TowerVectors();

  uint32_t dim() const;
  const FeatureNames& features() const { return whole_->features(); }
  // The step of the vectors, that of the model when this was made.
  Clock step() const { return clock_; }
  // Returns the vectors of the rows, [n, dim]: see TowerRows::Assign. kStaleView if the model is of
  // another step by now.
  Result<std::vector<float>> Of(const Batch& rows, const FeatureNames& names);
  // Counts the keys of all rows so far.
  const UnknownCount& unknown() const { return unknown_; }

 private:
  TowerVectors(CheckpointModel& loaded, std::unique_ptr<TowerRows> whole, bool counts_unknown,
               RowView view);
  // Reads the rows of `parts_`, all of them of the tower's own step.
  Status ReadRows();

  CheckpointModel& loaded_;
  const RowView view_;
  Clock clock_ = kNoClock;
  const std::unique_ptr<TowerRows> whole_;
  std::unique_ptr<LayerValues> values_;
  const bool counts_unknown_;
  UnknownCount unknown_;
  StepParts parts_;                       // A member to reuse its memory.
  std::vector<std::vector<float>> rows_;  // [tables]
};

// Returns the bias of a two_tower model's score; 0 if it has none (sampled_softmax).
float ScoreBias(CheckpointModel& loaded, RowView view = RowView::kPublished);

}  // namespace hdps
