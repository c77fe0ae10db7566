// Determines how the layers of a job are split over a number of workers.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "common/parallel/kept_strategy.h"
#include "common/parallel/strategy.h"
#include "common/platform/file_system.h"

namespace hdps {

struct Job;

// Returns the strategy for a job. It depends only on the arguments, so the scheduler and all
// workers get the same. The mode of the job decides:
//   stand_alone, data_parallel  every worker computes the whole model on its rows;
//   hybrid_parallel             shards and blocks are followed, the rest is data parallel;
//   semi_auto_parallel          the rest is derived by sharding propagation;
//   auto_parallel               the rest is searched, as parallel.search_mode says.
// If the job names a strategy file to load, that is used instead. Errors: kInvalidArgument names
// the setting or the file, the value, and what would be right, for a split that the layer or the
// number of workers does not allow, a file for another model or number of workers, and more memory
// than a worker may use.
Result<Strategy> StrategyOf(const Job& job, uint32_t workers);

// Errors: kInvalidArgument if a setting of the job conflicts with layers that a strategy cuts.
Status CheckCutTraining(const Job& job);

// Returns one line for the log: the source of the strategy, and what it cuts.
std::string StrategyLine(const Job& job, const Strategy& strategy);

// Returns the strategy with everything that its file keeps.
KeptStrategy KeptOf(const Job& job, const Strategy& strategy);

// Writes the strategy to the file that the job names, if any.
Status SaveStrategy(FileSystem& files, const Job& job, const Strategy& strategy);

}  // namespace hdps
