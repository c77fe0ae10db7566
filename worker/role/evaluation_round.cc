// Feeds rows from the servers to the scorer, and its scores into answers.
#include "worker/role/evaluation_round.h"

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/job/job_spec.h"
#include "common/protocol/row_messages.h"
#include "worker/step/label_count.h"

namespace hdps {

Result<std::unique_ptr<EvaluationRound>> EvaluationRound::Begin(const Job& job, Model& model,
                                                                Clock clock, NodeChannel& channel,
                                                                MonotonicClock& time,
                                                                FileSystem& files,
                                                                const PipelineOptions& reading) {
  std::unique_ptr<EvaluationRound> round(new EvaluationRound(job, channel, time, clock));
  HDPS_ASSIGN_OR_RETURN(round->steps_, StepPipeline::Start(job, files, time, reading));
  round->scorer_ = std::make_unique<StepScorer>(job, model, *round->steps_, round->RowsOfServers());
  return round;
}

RowSource EvaluationRound::RowsOfServers() {
  const auto ask = [this](const PreparedStep& step) {
    gathers_.emplace_back(job_, channel_, time_)
        .RequestRows(step, {.clock = clock_}, PullMode::kRead);
  };
  const auto fetch = [this](const PreparedStep& /*asked for*/,
                            std::vector<std::vector<float>>* rows) {
    HDPS_RETURN_IF_ERROR(gathers_.front().Take(std::nullopt));
    std::swap(*rows, gathers_.front().rows());
    gathers_.pop_front();
    return Status();
  };
  return {ask, fetch};
}

Status EvaluationRound::Next(size_t examples, CommandDone* done) {
  const ScoreSums before = scorer_->sums();
  ExampleScores scores;
  LabelTally labels;
  const auto take = [&](const Batch& batch, std::span<const float> of_batch) {
    scores.Add(job_, batch, of_batch);
    labels.Add(CountLabels(batch));
    return Status();
  };
  do {
    HDPS_RETURN_IF_ERROR(scorer_->ScoreStep(take));
  } while (!scorer_->at_end() && scorer_->sums().examples - before.examples < examples);
  const ScoreSums& sums = scorer_->sums();
  done->examples = sums.examples - before.examples;
  done->loss_sum = sums.loss_sum - before.loss_sum;
  done->weight_sum = sums.weight_sum - before.weight_sum;
  done->bad_rows = sums.bad_rows - before.bad_rows;
  done->label_tally = labels;
  done->scores = Buffer::CopyOf(std::span<const float>(scores.scores));
  done->labels = Buffer::CopyOf(std::span<const float>(scores.labels));
  done->weights = Buffer::CopyOf(std::span<const float>(scores.weights));
  done->groups = Buffer::CopyOf(std::span<const Key>(scores.groups));
  done->more = !scorer_->at_end();
  return Status();
}

}  // namespace hdps
