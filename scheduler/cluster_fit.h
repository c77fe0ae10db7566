// Whether a job fits the cluster it is started with.
#pragma once

#include <cstdint>

#include "common/job.h"
#include "common/status.h"

namespace hdps {

// kInvalidArgument names the field of the job, the flag, both numbers and what would be right.
Status CheckClusterFit(const Job& job, uint32_t num_servers, uint32_t num_workers);

}  // namespace hdps
