// Read, fetch, predict, keep.
#include "worker/step/evaluation.h"

#include <memory>
#include <span>
#include <utility>

#include "worker/step/label_count.h"

namespace hdps {
namespace {

// Examples of one worker's step: enough for the matrix products, little enough for memory.
constexpr uint32_t kEvaluationExamples = 4096;

// Null at the end.
Result<std::unique_ptr<PreparedStep>> NextWithExamples(StepPipeline& steps, ScoreSums* sums) {
  while (true) {
    HDPS_ASSIGN_OR_RETURN(std::unique_ptr<PreparedStep> step, steps.Next());
    if (step != nullptr) sums->bad_rows = step->bad_rows;
    if (step == nullptr || step->parts.num_examples() > 0) return step;
  }
}

}  // namespace

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

Result<ScoreSums> ScoreSteps(const Job& job, Model& model, StepPipeline& steps,
                             const RowSource& source, const TakeScores& take) {
  ScoreSums sums;
  std::vector<std::vector<float>> rows(job.tables.size());
  std::vector<TableInput> inputs(job.tables.size());
  std::vector<float> scores;
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<PreparedStep> next, NextWithExamples(steps, &sums));
  if (next != nullptr && source.ask) source.ask(*next);
  while (next != nullptr) {
    std::unique_ptr<PreparedStep> step = std::move(next);
    HDPS_ASSIGN_OR_RETURN(next, NextWithExamples(steps, &sums));
    if (next != nullptr && source.ask) source.ask(*next);
    const Batch& batch = step->parts.parts()[0].batch;
    HDPS_RETURN_IF_ERROR(model.CheckBatch(batch));
    HDPS_RETURN_IF_ERROR(source.fetch(*step, &rows));
    for (uint32_t t = 0; t < inputs.size(); ++t) {
      inputs[t].keys = step->parts.SetOf(0, {t});
      inputs[t].rows = rows[t];
    }
    sums.loss_sum += model.Predict(batch, inputs, &scores);
    sums.examples += batch.num_examples;
    sums.labels.Add(CountLabels(batch));
    HDPS_RETURN_IF_ERROR(take(batch, scores));
    steps.Recycle(std::move(step));
  }
  return sums;
}

}  // namespace hdps
