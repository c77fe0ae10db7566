// Measures how fast each worker is while others share its machine.
#pragma once

#include <cstdint>
#include <string>

#include "benchmarks/bench.h"
#include "common/parallel/step_rates.h"

namespace hdps {

struct Job;

// Measures each rate on `workers` threads at once, like workers on one machine: products of the
// job's own layers on a worker's part of the examples, copies, updates of its dense parameters,
// exchanges in a Gloo group on loopback, and pulls and pushes of long rows of one server in the
// same process. The link's rate stays that of StepRates if a long exchange was no slower than a
// short one; stderr says so. `group` names the group and must be unique in the process.
Result<StepRates> MeasureSharedRates(const BenchSetting& setting, FileSystem& files, const Job& job,
                                     uint32_t workers, const std::string& group);

}  // namespace hdps
