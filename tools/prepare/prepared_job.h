// The job file that a profile and a plan make: it trains as it is.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "tools/prepare/data_plan.h"

namespace hdps {

struct JobWish {
  std::string name;
  std::string model;                     // A recipe; empty: the usual one for the task.
  std::vector<std::string> train, eval;  // Paths, as the job is to have them.
  double validation_share = 0;           // Of `train`, where there is no `eval`.
};

// The recipe that the job has.
std::string ModelOf(const DataPlan& plan, const JobWish& wish);
// kInvalidArgument where the recipe cannot learn the task, or the data lacks what it needs.
Status CheckModel(const DataPlan& plan, const JobWish& wish);

// JSON. The wish has passed CheckModel.
std::string PreparedJob(const DataProfile& profile, const DataPlan& plan, const JobWish& wish);
// The reasons of what the job does, for the report: a title and a text each.
std::vector<std::pair<std::string, std::string>> JobReasons(const DataProfile& profile,
                                                            const DataPlan& plan,
                                                            const JobWish& wish);

// What the tables of that job take with their optimizer state once every key has a row, in bytes.
struct TableEstimate {
  double rows = 0, bytes = 0;
};
TableEstimate EstimateTables(const DataPlan& plan, const JobWish& wish);

}  // namespace hdps
