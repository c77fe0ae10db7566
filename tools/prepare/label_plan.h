// Which column is the label, and which of its texts mean 1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "tools/prepare/data_profile.h"

namespace hdps {

struct LabelPlan {
  size_t column = 0;
  std::vector<std::string> positive;  // Texts that mean 1; empty: labels are 0 and 1, or -1 and 1.
  uint64_t positives = 0, negatives = 0, missing = 0;  // Rows.
  std::vector<std::string> notes;
};

// As PlanData.
Result<LabelPlan> PlanLabel(const DataProfile& train, const DataProfile* eval,
                            const std::string& name);

}  // namespace hdps
