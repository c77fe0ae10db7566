// What an evaluation came to: the workers' parts as one, and its sentence for people.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/job/model_spec.h"
#include "common/protocol/messages.h"

namespace hdps {

struct Evaluation {
  uint64_t examples = 0;
  double auc = 0;      // NaN where there is none.
  double logloss = 0;  // NaN where there is none.
  // Why the AUC has no value, in words; empty where it has one, and under softmax, which has none.
  std::string no_auc = {};
};

// `parts` are the answers to kEvaluate, in the order of the workers' ranks.
Evaluation JoinParts(LossKind loss, std::span<const CommandDone* const> parts);

// The figure that `metric`, one of kMetricWords, means; NaN where there is none.
double FigureOf(const Evaluation& evaluation, std::string_view metric);

// "AUC 0.912345, logloss 0.301234 over 16,281 examples".
std::string Describe(const Evaluation& evaluation);

}  // namespace hdps
