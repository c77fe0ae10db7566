// hdps evaluate: how good a checkpoint's scores are.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "common/base/auc.h"
#include "tools/scored_data.h"

namespace hdps {
namespace {

// Rows whose most probable class is their label. scores[n * classes]
uint64_t CountRight(std::span<const float> scores, std::span<const float> labels) {
  const size_t classes = labels.empty() ? 0 : scores.size() / labels.size();
  uint64_t right = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto row = scores.subspan(i * classes, classes);
    const auto best = std::max_element(row.begin(), row.end()) - row.begin();
    right += static_cast<float>(best) == labels[i] ? 1 : 0;
  }
  return right;
}

// `why`: why there is no such figure, where there is none.
void PrintFigure(std::ostream& to, const char* name, double value, const std::string& why) {
  char line[64];
  std::snprintf(line, sizeof(line), std::isfinite(value) ? "%-10s %.6f" : "%-10s undefined", name,
                value);
  to << line << (std::isfinite(value) || why.empty() ? "" : ": " + why) << "\n";
}

}  // namespace

Status RunEvaluate(const CommonFlags& flags, FileSystem& files, Executor& executor,
                   std::ostream& to) {
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<ScoredData> data,
                        ScoredData::Open(flags, files, executor));
  std::vector<float> scores, labels;
  uint64_t right = 0;
  const auto take = [&](const Batch& batch, std::span<const float> of_batch) {
    if (data->softmax()) {
      right += CountRight(of_batch, batch.labels);
      return Status();
    }
    scores.insert(scores.end(), of_batch.begin(), of_batch.end());
    labels.insert(labels.end(), batch.labels.begin(), batch.labels.end());
    return Status();
  };
  HDPS_ASSIGN_OR_RETURN(const ScoreSums sums, data->Score(/*labels=*/true, take));
  if (sums.examples == 0) {
    return Status(Code::kInvalidArgument, "--data: there is no row in these files");
  }
  const auto examples = static_cast<double>(sums.examples);
  to << "checkpoint " << data->checkpoint() << "\n";
  to << "examples   " << sums.examples << "\n";
  if (sums.bad_rows > 0) to << "bad rows   " << sums.bad_rows << "\n";
  if (data->softmax()) {
    PrintFigure(to, "logloss", sums.loss_sum / examples, "");
    PrintFigure(to, "accuracy", static_cast<double>(right) / examples, "");
    return Status();
  }
  const std::string why = WhyNoAuc(scores, labels);
  PrintFigure(to, "logloss", MeanLogloss(scores, labels), why);
  PrintFigure(to, "auc", ExactAuc(scores, labels), why + data->TextsHint(sums.labels));
  return Status();
}

}  // namespace hdps
