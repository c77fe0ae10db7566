// Sets in their order, metrics by their words.
#include "common/job/eval_sets.h"

#include <algorithm>

namespace hdps {

std::vector<EvalSet> EvalSetsOf(const DataSpec& data) {
  std::vector<EvalSet> sets;
  if (!data.eval.empty()) sets.push_back({kEvalName, data.eval, /*held_out=*/false});
  if (data.validation_share > 0) sets.push_back({kValidationName, data.train, /*held_out=*/true});
  for (const EvalSetSpec& set : data.eval_sets) {
    sets.push_back({set.name, set.files, /*held_out=*/false});
  }
  return sets;
}

bool LowerIsBetter(std::string_view metric) {
  const auto* const found = std::ranges::find(kMetricWords, metric, &MetricWord::word);
  return found != kMetricWords.end() && found->lower_is_better;
}

std::string UsualMetric(const Job& job) {
  return job.model.loss == LossKind::kLogloss ? "auc" : "logloss";
}

}  // namespace hdps
