// One list of scores from all workers, and what follows from it.
#include "scheduler/report/evaluation.h"

#include <cmath>
#include <limits>
#include <vector>

#include "common/base/auc.h"
#include "common/base/show_number.h"

namespace hdps {
namespace {

std::string Figure(double value) {
  return std::isfinite(value) ? ShowNumber("%.6f", value) : "undefined";
}

}  // namespace

Evaluation JoinParts(LossKind loss, std::span<const CommandDone* const> parts) {
  std::vector<float> scores, labels;
  Evaluation joined;
  double loss_sum = 0;
  for (const CommandDone* part : parts) {
    const auto part_scores = part->scores.As<float>(), part_labels = part->labels.As<float>();
    scores.insert(scores.end(), part_scores.begin(), part_scores.end());
    labels.insert(labels.end(), part_labels.begin(), part_labels.end());
    joined.examples += part->examples;
    loss_sum += part->loss_sum;
  }
  if (loss == LossKind::kLogloss) {
    joined.auc = ExactAuc(scores, labels);
    joined.logloss = MeanLogloss(scores, labels);
    joined.no_auc = WhyNoAuc(scores, labels);
    return joined;
  }
  // There is no class 1, so no AUC; and without an example the division gives no loss either.
  joined.auc = std::numeric_limits<double>::quiet_NaN();
  joined.logloss = loss_sum / static_cast<double>(joined.examples);
  return joined;
}

double FigureOf(const Evaluation& evaluation, std::string_view metric) {
  return metric == "auc" ? evaluation.auc : evaluation.logloss;
}

std::string Describe(const Evaluation& evaluation) {
  std::string text;
  if (!evaluation.no_auc.empty()) {
    text = "AUC undefined (" + evaluation.no_auc + "), ";
  } else if (std::isfinite(evaluation.auc)) {
    text = "AUC " + Figure(evaluation.auc) + ", ";
  }
  return text + "logloss " + Figure(evaluation.logloss) + " over " +
         ShowWhole(static_cast<double>(evaluation.examples)) + " examples";
}

}  // namespace hdps
