// What evaluate and predict share: files through a checkpoint's model, batch by batch.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/eval_sets.h"
#include "common/job/job_facts.h"
#include "common/job/spec/loss_kind.h"
#include "common/job/spec/model_spec.h"
#include "common/metrics/metric.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "common/platform/output_file.h"
#include "tools/checkpoint_model.h"
#include "tools/rank_scoring.h"
#include "tools/scoring.h"
#include "worker/step/evaluation.h"

namespace hdps {

struct LabelTally;

struct RowsWanted {
  bool labels = true;  // Without them rows need none, and the sums of losses mean nothing.
  BadRows bad_rows = BadRows::kCounted;
};

// Data and a model that fit each other.
class ScoredData {
 public:
  // `files` and `executor` must outlive it.
  static Result<std::unique_ptr<ScoredData>> Open(const CommonFlags& flags, FileSystem& files,
                                                  Executor& executor);

  bool softmax() const { return job_.model.loss == LossKind::kSoftmax; }
  const Job& job() const { return job_; }
  std::vector<TaskMetrics> Metrics() const { return MetricsOf(job_); }
  // Who would hold what of the model, and of the checkpoint's tables.
  std::string WhoHoldsWhat() const;
  const std::string& checkpoint() const { return loaded_->checkpoint().folder; }
  // What the scores are where they are no probabilities and no predicted numbers; else empty.
  std::string WhatScoresAre() const;
  // Rows that the training held out: their lines are those of no file.
  bool held_out() const { return set_.held_out; }
  // All that it reads.
  Result<std::vector<InputFile>> Inputs() const;
  // Where no label was one of the job's positive texts: a clause that names them; else empty.
  std::string TextsHint(const LabelTally& labels) const;
  // Every row in order; once.
  Result<ScoreSums> Score(const RowsWanted& rows, const TakeScores& take);

 private:
  explicit ScoredData(FileSystem& files) : files_(files), clock_(NewSystemClock()) {}

  FileSystem& files_;
  const std::unique_ptr<MonotonicClock> clock_;
  std::string job_file_;  // Empty: the job is the checkpoint's.
  Job job_;
  EvalSet set_;  // What is scored; without a name: files of the command line.
  std::unique_ptr<CheckpointModel> loaded_;
  std::unique_ptr<RankScoring> ranks_;  // Null: one worker.
};

}  // namespace hdps
