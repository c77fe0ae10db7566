// The numbers of servers and workers that somebody has asked for while the job runs.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "common/job/job.h"
#include "common/protocol/messages.h"
#include "scheduler/members/rendezvous.h"

namespace hdps {

// Of one role; more than a view can name.
inline constexpr int64_t kMembersMax = 1 << 16;

// Newcomers join while the job goes on; when all are here, or there are none to wait for, the
// members change at the next point at which all workers stand at one clock.
//
// Invariant: under_way() from an accepted request until Done(); the targets fit the job.
class Scaling {
 public:
  // Opens places for newcomers in `rendezvous`. kInvalidArgument says what would be right, and then
  // nothing has changed. Returns a sentence for who asked.
  Result<std::string> Accept(const Job& job, const ScaleRequest& request, Rendezvous& rendezvous);

  // What another process of the scheduler had accepted.
  void Continue(uint32_t servers, uint32_t workers, Rendezvous& rendezvous);

  bool under_way() const { return under_way_; }
  // Nobody is waited for any more.
  bool ready(const Rendezvous& rendezvous) const {
    return rendezvous.Count(Role::kServer) >= servers_ &&
           rendezvous.Count(Role::kWorker) >= workers_;
  }
  uint32_t servers() const { return servers_; }
  uint32_t workers() const { return workers_; }
  void Done() { under_way_ = false; }

 private:
  bool under_way_ = false;
  uint32_t servers_ = 0, workers_ = 0;
};

}  // namespace hdps
