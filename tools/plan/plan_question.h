// Turns a job into the question of how fast it trains on a cluster.
#pragma once

#include <cstdint>

#include "common/base/status.h"
#include "tools/plan/cost_model.h"

namespace hdps {

struct Job;

// Returns the question for `servers` and `workers` and `rows` distinct keys: what it asks of the
// job is filled in, and what it asks of the cluster has its default. Errors: kInvalidArgument if
// the layers do not fit together, or if the batch has fewer examples than there are workers.
Result<PlanQuestion> QuestionOf(const Job& job, uint32_t servers, uint32_t workers, double rows);

// The number of distinct keys where neither the job nor the operator tells one.
inline constexpr double kRowsUsual = 1e7;

// Returns the number of distinct keys that the job's data.distinct counts; 0: it counts none.
double CountedRows(const Job& job);

}  // namespace hdps
