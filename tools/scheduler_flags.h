// Reads the flags that name a running scheduler, and connects to it.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "tools/scheduler_question.h"

namespace hdps {

// How long commands wait for an answer.
inline constexpr int64_t kAskPatienceMs = 5000;

// Connects to --scheduler with the first key of `roles` that the folder --keys has. Returns
// kInvalidArgument if a flag is missing or wrong.
Result<std::unique_ptr<SchedulerConnection>> OpenScheduler(std::vector<KeyRole> roles);

template <typename Reply, typename Request>
Result<Reply> AskScheduler(std::vector<KeyRole> roles, const Request& request) {
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<SchedulerConnection> connection,
                        OpenScheduler(std::move(roles)));
  return connection->Ask<Reply>(request, kAskPatienceMs);
}

}  // namespace hdps
