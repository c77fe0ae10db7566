// What each of some workers does in how much time while the others share the machine with it.
#pragma once

#include <cstdint>
#include <string>

#include "benchmarks/bench.h"
#include "common/parallel/step_rates.h"

namespace hdps {

struct Job;

// Each rate on as many threads at once as there are workers, as the workers of one machine are:
// products of the job's own layers on a worker's part of the examples, copies, updates of its dense
// parameters, and exchanges of a Gloo group on loopback. Rows stay as StepRates has them; so
// does the link, and stderr says it, where a long exchange took no longer than a short one. `group`
// names the group; no two in a process may share it.
Result<StepRates> MeasureSharedRates(const BenchSetting& setting, const Job& job, uint32_t workers,
                                     const std::string& group);

}  // namespace hdps
