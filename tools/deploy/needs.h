// Foresees the memory and the cores of each member of a job, from what hdps plan computes.
#pragma once

#include <cstdint>

#include "common/base/status.h"
#include "tools/deploy/deployment.h"

namespace hdps {

struct Job;

// Sets the needs of all roles for `rows` distinct keys. Those of a server under
// cluster.memory_limit follow from the limit. Errors: those of QuestionOf().
Status ForeseeNeeds(const Job& job, double rows, double zipf, Deployment* deployment);

// Returns the needs with `limit_bytes` of memory, as the operator gives them.
MemberNeeds WithMemory(MemberNeeds needs, uint64_t limit_bytes);

}  // namespace hdps
