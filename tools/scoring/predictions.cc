// Applies the link function of each task's loss.
#include "tools/scoring/predictions.h"

#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/loss_kind.h"
#include "common/job/spec/model_spec.h"
#include "common/metrics/probability.h"

namespace hdps {

Predictions::Predictions(const Job& job) {
  for (const TaskSpec& task : TasksOf(job.model)) {
    logits_.push_back(task.loss == LossKind::kLogloss);
  }
}

void Predictions::Convert(std::span<float> scores) const {
  // A row has a score for each task, or the classes of the only one.
  for (size_t i = 0; i < scores.size(); ++i) {
    if (!logits_[i % logits_.size()]) continue;
    scores[i] = static_cast<float>(ProbabilityOf(static_cast<double>(scores[i])));
  }
}

std::string ScoreNotANumber(uint64_t row) {
  return "the score of row " + std::to_string(row) +
         " of the data is not a number: expected a model whose weights are finite, and numbers of "
         "the size that it was trained on";
}

}  // namespace hdps
