// Checks whether a job fits the cluster it is started with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace hdps {

struct Job;

// kInvalidArgument names the field of the job, the flag, both numbers and a valid value.
Status ValidateCluster(const Job& job, uint32_t num_servers, uint32_t num_workers);

// Checks the same for a job that goes on with the remaining members.
Status ValidateMembers(const Job& job, uint32_t num_servers, uint32_t num_workers);

// Returns the job's own warnings, and those that follow from the number of workers.
std::vector<std::string> WarningsOf(const Job& job, uint32_t num_workers);

}  // namespace hdps
