// Measures two tables that share rows beside the same two with rows of their own.
#pragma once

#include "benchmarks/bench.h"

namespace hdps {

// Runs the cases "joined_..." of hdps-bench table: the rows of a wide and a deep part, read and
// updated under one look-up and under one each.
void RunTableJoined(const BenchSetting& setting, BenchReport& report);

}  // namespace hdps
