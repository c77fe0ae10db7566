// The trainer's part of an evaluation: scored step by step, answered in pieces.
#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/job/eval_sets.h"
#include "common/platform/failpoint.h"
#include "worker/role/trainer.h"
#include "worker/step/label_count.h"

namespace hdps {

Status Trainer::BeginEvaluation(const std::string& eval_set) {
  HDPS_FAILPOINT_OR_RETURN("worker.evaluate.begun");
  const auto num_parts = static_cast<uint32_t>(channel_.view()->workers.size());
  const std::vector<EvalSet> sets = EvalSetsOf(job_->data);
  const auto set =
      eval_set.empty() ? sets.begin() : std::ranges::find(sets, eval_set, &EvalSet::name);
  if (set == sets.end()) {
    return Status(Code::kInvalidArgument, "this job has no evaluation set '" + eval_set + "'");
  }
  PipelineOptions options = EvaluationOptions(*job_, *set, channel_.rank().value, num_parts);
  options.plan.view = channel_.view();
  options.plan.sections = channel_.sections();
  options.executor = &executor_;
  options.board = &board_;
  if (allreduce() && rank_model_ == nullptr) {
    HDPS_RETURN_IF_ERROR(LoadDenseState());
  } else if (!dense_keys_.empty()) {
    std::vector<float> weights(model_->dense_floats());
    HDPS_RETURN_IF_ERROR(PullDense(PullMode::kRead, dense_spec().dim, dense_keys_, weights));
    model_->SetDense(weights);
  }
  evaluation_ = std::make_unique<PartEvaluation>();
  HDPS_ASSIGN_OR_RETURN(evaluation_->steps, StepPipeline::Start(*job_, files_, time_, options));
  std::deque<RowGather>& gathers = evaluation_->gathers;
  const auto ask = [this, &gathers](const PreparedStep& step) {
    gathers.emplace_back(*job_, channel_, time_).Ask(step, {.clock = clock_}, PullMode::kRead);
  };
  const auto fetch = [&gathers](const PreparedStep& /*asked for*/,
                                std::vector<std::vector<float>>* rows) {
    HDPS_RETURN_IF_ERROR(gathers.front().Take(std::nullopt));
    std::swap(*rows, gathers.front().rows());
    gathers.pop_front();
    return Status();
  };
  evaluation_->scorer =
      std::make_unique<StepScorer>(*job_, *model_, *evaluation_->steps, RowSource{ask, fetch});
  return Status();
}

Status Trainer::EvaluatePart(const Command& command, CommandDone* done) {
  // The scheduler holds one answer of each worker at a time.
  constexpr size_t kExamplesInAnswers = size_t{1} << 20;
  if (!command.next) {
    HDPS_RETURN_IF_ERROR(BeginEvaluation(command.eval_set));
  } else if (evaluation_ == nullptr) {
    return Status(Code::kInvalidArgument, "there is no evaluation to go on with");
  }
  StepScorer& scorer = *evaluation_->scorer;
  const ScoreSums before = scorer.sums();
  const size_t examples_max = kExamplesInAnswers / channel_.view()->workers.size();
  ExampleScores scores;
  LabelTally labels;
  const auto take = [&](const Batch& batch, std::span<const float> of_batch) {
    scores.Add(*job_, batch, of_batch);
    labels.Add(CountLabels(batch));
    return Status();
  };
  do {
    HDPS_RETURN_IF_ERROR(scorer.ScoreStep(take));
  } while (!scorer.at_end() && scorer.sums().examples - before.examples < examples_max);
  done->examples = scorer.sums().examples - before.examples;
  done->loss_sum = scorer.sums().loss_sum - before.loss_sum;
  done->weight_sum = scorer.sums().weight_sum - before.weight_sum;
  done->bad_rows = scorer.sums().bad_rows - before.bad_rows;
  done->label_tally = labels;
  done->scores = Buffer::CopyOf(std::span<const float>(scores.scores));
  done->labels = Buffer::CopyOf(std::span<const float>(scores.labels));
  done->weights = Buffer::CopyOf(std::span<const float>(scores.weights));
  done->groups = Buffer::CopyOf(std::span<const Key>(scores.groups));
  done->more = !scorer.at_end();
  if (!done->more) evaluation_.reset();
  return Status();
}

}  // namespace hdps
