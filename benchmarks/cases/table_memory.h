// Measures what rows take beyond their content.
#pragma once

#include "benchmarks/bench.h"

namespace hdps {

// Runs the cases "memory_..." of hdps-bench table: the bytes of a row beyond its weights, state and
// key, over many sizes of a table.
void RunTableMemory(const BenchSetting& setting, BenchReport& report);

}  // namespace hdps
