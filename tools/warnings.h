// The warnings of a job, for people at a terminal.
#pragma once

#include "common/job/job.h"

namespace hdps {

// Each on a line of stderr, "warning: ...".
void PrintWarnings(const Job& job);

}  // namespace hdps
