// Plans the label: which column it is, which task fits it, and what its texts mean.
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
  size_t column = 0;  // kNoColumn: no label; only with kPositivesOnly.
  // Texts that mean 1; empty: labels are 0 and 1, or -1 and 1.
  std::vector<std::string> positive;
  // kClasses: texts of the classes in the order of their numbers; empty: labels are these numbers.
  std::vector<std::string> classes;
  uint32_t num_classes = 2;                            // kClasses.
  double mean = 0, deviation = 0;                      // kRating: of the labels.
  uint64_t positives = 0, negatives = 0, missing = 0;  // Numbers of rows.
  // Tasks that also fit, `task` first; empty: no doubt.
  std::vector<TaskKind> choices;
  std::vector<std::string> notes;
};

// Plans the label, with errors as in PlanData.
Result<LabelPlan> PlanLabel(const DataProfile& train, const DataProfile* eval,
                            const DataWish& wish);

}  // namespace hdps
