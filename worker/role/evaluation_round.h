// Scores a worker's part of an evaluation step by step, and answers in pieces.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/job/eval_sets.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "worker/exchange/node_channel.h"
#include "worker/model/model.h"
#include "worker/step/evaluation.h"
#include "worker/step/row_gather.h"
#include "worker/step/step_pipeline.h"

namespace hdps {

struct Job;

// Invariant: every example of the part is in exactly one piece, in the order of the files, and
// scored with the rows of the servers and the dense weights of the model.
//
// Belongs to the trainer's thread.
class EvaluationRound {
 public:
  // Begins the round. Requires: all arguments outlive it; `model` has the dense weights of `clock`;
  // `reading` is that of EvaluationOptions(), split for the servers of the channel's view.
  static Result<std::unique_ptr<EvaluationRound>> Begin(const Job& job, Model& model, Clock clock,
                                                        NodeChannel& channel, MonotonicClock& time,
                                                        FileSystem& files,
                                                        const PipelineOptions& reading);
  EvaluationRound(const EvaluationRound&) = delete;
  EvaluationRound& operator=(const EvaluationRound&) = delete;

  // Scores whole steps until they have at least `examples` examples, or the rest, and fills in
  // their part of an answer to kEvaluate.
  Status Next(size_t examples, CommandDone* done);
  bool at_end() const { return scorer_->at_end(); }

 private:
  EvaluationRound(const Job& job, NodeChannel& channel, MonotonicClock& time, Clock clock)
      : job_(job), channel_(channel), time_(time), clock_(clock) {}
  RowSource RowsOfServers();

  const Job& job_;
  NodeChannel& channel_;
  MonotonicClock& time_;
  const Clock clock_;
  std::unique_ptr<StepPipeline> steps_;
  std::deque<RowGather> gathers_;  // Rows of the step being scored and of the next one.
  std::unique_ptr<StepScorer> scorer_;
};

}  // namespace hdps
