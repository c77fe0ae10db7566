// Which column is the label, what a model can learn of it, and which of its texts mean what.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "tools/prepare/data_profile.h"
#include "tools/prepare/data_wish.h"

namespace hdps {

struct LabelPlan {
  TaskKind task = TaskKind::kBinary;
  size_t column = 0;                  // kNoColumn: none, under kPositivesOnly alone.
  std::vector<std::string> positive;  // Texts that mean 1; empty: labels are 0 and 1, or -1 and 1.
  // kClasses: their texts, in the order of their numbers; empty: labels are these numbers.
  std::vector<std::string> classes;
  uint32_t num_classes = 2;                            // kClasses.
  double mean = 0, deviation = 0;                      // kRating.
  uint64_t positives = 0, negatives = 0, missing = 0;  // Rows.
  std::vector<TaskKind> choices;  // What else a person may mean, `task` first; empty: no doubt.
  std::vector<std::string> notes;
};

// As PlanData.
Result<LabelPlan> PlanLabel(const DataProfile& train, const DataProfile* eval,
                            const DataWish& wish);

}  // namespace hdps
