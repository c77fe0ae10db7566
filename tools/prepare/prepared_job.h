// The job file that a profile and a plan make: it trains as it is.
#pragma once

#include <string>
#include <vector>

#include "tools/prepare/data_plan.h"

namespace hdps {

struct JobWish {
  std::string name;
  std::string model = "wide_deep";
  std::vector<std::string> train, eval;  // Paths, as the job is to have them.
  double validation_share = 0;           // Of `train`, where there is no `eval`.
};

// JSON.
std::string PreparedJob(const DataProfile& profile, const DataPlan& plan, const JobWish& wish);

// What the tables of that job take with their optimizer state once every key has a row, in bytes.
struct TableEstimate {
  double rows = 0, bytes = 0;
};
TableEstimate EstimateTables(const DataPlan& plan, const JobWish& wish);

}  // namespace hdps
