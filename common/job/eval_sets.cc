// Lists evaluation sets, and metrics in the order of the tasks.
#include "common/job/eval_sets.h"

#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/metrics/metric.h"

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

std::vector<std::string> MeasuredMetrics(const Job& job) {
  std::vector<std::string> measured;
  for (const TaskMetrics& task : MetricsOf(job)) {
    for (const std::string& word : task.words) {
      measured.push_back(task.task.empty() ? word : task.task + "." + word);
    }
  }
  return measured;
}

std::string UsualMetric(const Job& job) {
  if (IsTablesJob(job)) return "";
  const std::vector<std::string> measured = MeasuredMetrics(job);
  return measured.empty() ? "logloss" : measured.front();
}

}  // namespace hdps
