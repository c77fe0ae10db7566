// Prints what hdps prepare found.
#pragma once

#include <string>

#include "tools/prepare/prepared_job.h"

namespace hdps {

// Returns one line per column, then the label, the memory, and what to check. Line ends inside
// names and values of the data are replaced.
std::string PrepareReport(const DataProfile& profile, const DataPlan& plan, const JobWish& wish);

}  // namespace hdps
