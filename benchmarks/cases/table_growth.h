// How long pushes take while a table grows.
#pragma once

#include "benchmarks/bench.h"

namespace hdps {

// The cases "growth_..." of hdps-bench table: the longest call of a table that grows from nothing.
void RunTableGrowth(const BenchSetting& setting, BenchReport& report);

}  // namespace hdps
