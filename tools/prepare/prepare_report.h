// What hdps prepare found, as a person reads it.
#pragma once

#include <string>

#include "tools/prepare/prepared_job.h"

namespace hdps {

// A line a column, then the label, memory, and what should be looked at. No line has an end of its
// own in a name or a value of the data.
std::string PrepareReport(const DataProfile& profile, const DataPlan& plan, const JobWish& wish);

}  // namespace hdps
