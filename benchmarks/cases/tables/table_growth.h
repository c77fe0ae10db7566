// Measures how long pushes take while a table grows.
#pragma once

#include "benchmarks/bench.h"

namespace hdps {

// Runs the cases "growth_..." of hdps-bench table: the longest call while a table grows from
// nothing.
void RunTableGrowth(const BenchSetting& setting, BenchReport& report);

}  // namespace hdps
