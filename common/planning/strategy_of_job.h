// The one way from a job and a number of workers to how its layers lie over them.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "common/parallel/kept_strategy.h"
#include "common/parallel/strategy.h"
#include "common/platform/file_system.h"

namespace hdps {

struct Job;

// A function of the job alone, so the scheduler and every worker come to the same:
//   stand_alone, data_parallel  every worker computes the whole model on its rows;
//   hybrid_parallel             as shards and blocks say, the rest data parallel;
//   semi_auto_parallel          what they leave open is derived by sharding propagation;
//   auto_parallel               it is searched, as parallel.search_mode says;
// or, where the job names a file to load, what that says. kInvalidArgument names the setting or the
// file, the value, and what would be right: a split that the layer or the number of workers does
// not allow, a file of another model or number of workers, more memory than a worker may use.
Result<Strategy> StrategyOf(const Job& job, uint32_t workers);

// kInvalidArgument where the job has what does not go together with layers that a strategy cuts.
Status CheckCutTraining(const Job& job);

// One line for the log: where the strategy is from, and what it cuts.
std::string StrategyLine(const Job& job, const Strategy& strategy);

// The strategy with all that a file keeps of it.
KeptStrategy KeptOf(const Job& job, const Strategy& strategy);

// Writes it where the job says; nothing where it names no file.
Status SaveStrategy(FileSystem& files, const Job& job, const Strategy& strategy);

}  // namespace hdps
