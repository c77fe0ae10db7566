// Scores steps one by one while the rows of the next one are being fetched.
#include "worker/step/evaluation.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "common/job/job_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/metrics/metric.h"
#include "common/platform/memory_full.h"
#include "worker/model/step_parts.h"
#include "worker/step/label_count.h"

namespace hdps {
namespace {

double WeightOf(const Batch& batch) {
  if (batch.weights.empty()) return batch.num_examples;
  double sum = 0;
  for (const float weight : batch.weights) sum += static_cast<double>(weight);
  return sum;
}

}  // namespace

void ScoreSums::Add(const Batch& batch, double batch_loss_sum) {
  loss_sum += batch_loss_sum;
  examples += batch.num_examples;
  weight_sum += WeightOf(batch);
  labels.Add(CountLabels(batch));
}

Result<EvalSet> FindEvalSet(const Job& job, const std::string& name) {
  const std::vector<EvalSet> sets = EvalSetsOf(job.data);
  const auto set = name.empty() ? sets.begin() : std::ranges::find(sets, name, &EvalSet::name);
  if (set != sets.end()) return *set;
  return Status(Code::kInvalidArgument, "this job has no evaluation set '" + name + "'");
}

PipelineOptions EvaluationOptions(const Job& job, const EvalSet& set, uint32_t part,
                                  uint32_t num_parts) {
  PipelineOptions options;
  options.paths = set.files;
  options.reader.side = set.held_out ? RowSide::kHeldOut : RowSide::kAll;
  options.reader.seed = job.seed;
  options.reader.batch_size = kEvaluationExamples * num_parts;
  options.reader.part = part;
  options.reader.num_parts = num_parts;
  options.reader.shuffle = false;
  return options;
}

StepScorer::StepScorer(const Job& job, Model& model, StepPipeline& steps, RowSource source)
    : model_(model),
      steps_(steps),
      source_(std::move(source)),
      rows_(job.tables.size()),
      inputs_(job.tables.size()) {}

Status StepScorer::FindNext() {
  begun_ = true;
  while (true) {
    HDPS_ASSIGN_OR_RETURN(next_, steps_.Next());
    if (next_ == nullptr) return {};
    sums_.bad_rows = next_->bad_rows;
    if (next_->parts.empty()) continue;
    if (source_.ask) source_.ask(*next_);
    return {};
  }
}

Status StepScorer::ScoreStep(const TakeScores& take) {
  const MemoryFor scores("a step of scoring (embedding_dim, model.hidden)");
  if (!begun_) HDPS_RETURN_IF_ERROR(FindNext());
  if (next_ == nullptr) return {};
  std::unique_ptr<PreparedStep> step = std::move(next_);
  HDPS_RETURN_IF_ERROR(FindNext());
  const Batch& batch = step->parts.parts()[0].batch;
  HDPS_RETURN_IF_ERROR(model_.CheckBatch(batch));
  HDPS_RETURN_IF_ERROR(source_.fetch(*step, &rows_));
  for (uint32_t t = 0; t < inputs_.size(); ++t) {
    inputs_[t].keys = step->parts.SetOf(0, {t});
    inputs_[t].rows = rows_[t];
  }
  sums_.Add(batch, model_.Predict(batch, inputs_, &scores_));
  HDPS_RETURN_IF_ERROR(take(batch, scores_));
  steps_.Recycle(std::move(step));
  return {};
}

void ExampleScores::Clear() {
  scores.clear();
  labels.clear();
  weights.clear();
  groups.clear();
}

void ExampleScores::Add(const Job& job, const Batch& batch, std::span<const float> of_batch) {
  weights.insert(weights.end(), batch.weights.begin(), batch.weights.end());
  groups.insert(groups.end(), batch.groups.begin(), batch.groups.end());
  if (ScoreKindOf(job.model.loss) == ScoreKind::kClass && job.model.tasks.empty()) {
    const size_t classes = batch.num_examples == 0 ? 0 : of_batch.size() / batch.num_examples;
    for (size_t i = 0; i < batch.num_examples; ++i) {
      const auto row = of_batch.subspan(i * classes, classes);
      const auto best = std::ranges::max_element(row) - row.begin();
      scores.push_back(static_cast<float>(best) == batch.labels[i] ? 1.0f : -1.0f);
      labels.push_back(1.0f);
    }
    return;
  }
  scores.insert(scores.end(), of_batch.begin(), of_batch.end());
  labels.insert(labels.end(), batch.labels.begin(), batch.labels.end());
}

}  // namespace hdps
