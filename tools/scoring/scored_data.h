// Scores files by a checkpoint's model, batch by batch, for evaluate and predict.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/thread_annotations.h"
#include "common/job/eval_sets.h"
#include "common/job/job_facts.h"
#include "common/job/spec/loss_kind.h"
#include "common/metrics/metric.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "common/platform/output_file.h"
#include "tools/scoring/checkpoint_model.h"
#include "tools/scoring/ordered_scores.h"
#include "tools/scoring/rank_scoring.h"
#include "tools/scoring/scoring.h"
#include "tools/scoring/scoring_engine.h"
#include "tools/scoring/unknown_count.h"
#include "worker/step/evaluation.h"

namespace hdps {

struct LabelTally;

struct RowsWanted {
  bool labels = true;  // If false, rows need no labels, and the sums of losses mean nothing.
  BadRows bad_rows = BadRows::kCounted;
};

// The data to score and the model of a checkpoint that fits it.
class ScoredData {
 public:
  // Requires: `files` and `executor` outlive the result.
  static Result<std::unique_ptr<ScoredData>> Open(const CommonFlags& flags, FileSystem& files,
                                                  Executor& executor);

  bool softmax() const;
  const Job& job() const { return job_; }
  std::vector<TaskMetrics> Metrics() const { return MetricsOf(job_); }
  // Describes how the model and the checkpoint's tables would be split among the workers.
  std::string DescribePlacement() const;
  // Is false in a process whose worker only helps another one, which has the rank 0.
  bool tells() const { return tells_; }
  // Returns how much memory rows in 8 bits take, for a person; empty if rows are as saved.
  std::string RowsInInt8() const;
  const std::string& checkpoint() const { return loaded_->checkpoint().folder; }
  // Explains the scores if they are neither probabilities nor predicted numbers; else empty.
  std::string WhatScoresAre() const;
  // Is true if the rows are those that the training held out: their lines are not lines of a file.
  bool held_out() const { return set_.held_out; }
  // Lists all files that it reads.
  Result<std::vector<InputFile>> Inputs() const;
  // Returns a clause with the job's positive texts if no label was one of them; else empty.
  std::string TextsHint(const LabelTally& labels) const;
  // Tells how many keys of the scored rows have no row; empty if every key has one.
  std::string UnknownKeysTold() const { return unknown_ == nullptr ? "" : unknown_->Tell(); }
  // Scores every row. `take` is called in their order; `shape`, if set, before it with the same
  // batch, by several threads at once. Requires: it is called once.
  using ShapeBatch = std::function<Status(ScoredBatch*)>;
  Result<ScoreSums> Score(const RowsWanted& rows, const TakeBatch& take,
                          const ShapeBatch& shape = nullptr);

 private:
  // Connects the worker `flags.process` with those of the other processes.
  Result<ScoringRank> Meet(const CommonFlags& flags);
  ScoredData(FileSystem& files, Executor& executor)
      : files_(files), executor_(executor), clock_(NewSystemClock()) {}
  // Makes the engines that score, one for each thread.
  Status MakeEngines();
  Status ScoreOne(ScoringEngine& engine, ScoredBatch* scored);

  FileSystem& files_;
  Executor& executor_;
  const std::unique_ptr<MonotonicClock> clock_;
  std::string job_file_;  // Empty: the job comes from the checkpoint.
  Job job_;
  bool int8_rows_ = false;
  EvalSet set_;  // The set to score; without a name, the files of the command line.
  std::unique_ptr<CheckpointModel> loaded_;
  std::vector<std::unique_ptr<ScoringEngine>> engines_;
  Mutex counting_;
  std::unique_ptr<UnknownCount> unknown_;  // Null: keys without a row are not counted.
  std::unique_ptr<RankScoring> ranks_;     // Null with one worker; else the only engine finds keys.
  bool tells_ = true;
};

}  // namespace hdps
