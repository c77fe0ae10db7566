// Measures how long pushes take while a table grows, and what its rows take beyond their content.
#pragma once

#include "benchmarks/bench.h"

namespace hdps {

// Runs the cases "growth_..." of hdps-bench table: the longest call while a table grows from
// nothing; and "memory_...": the bytes of a row beyond its weights, state and key, over many sizes
// of a table.
void RunTableGrowth(const BenchSetting& setting, BenchReport& report);

}  // namespace hdps
