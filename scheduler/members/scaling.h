// The numbers of servers and workers that somebody has asked for while the job runs.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "common/base/status.h"
#include "common/net/node.h"
#include "common/protocol/status_messages.h"
#include "scheduler/members/rendezvous.h"

namespace hdps {

struct Job;

// Of one role; more than a view can name.
inline constexpr int64_t kMembersMax = 1 << 16;

// Newcomers join while the job goes on; when all are here, or there are none to wait for, the
// members change at the next point at which all workers stand at one clock.
//
// Invariant: under_way() from an accepted request until Done() or Dismiss(); the targets fit the
// job. A question that was asked again is answered alike.
class Scaling {
 public:
  struct Answer {
    ScaleReply reply;
    bool accepted = false;  // By this call.
  };
  // What `from` is told. `complete`: nobody is missing; else it has to ask again.
  Answer OnRequest(PeerId from, const ScaleRequest& request, const Job& job, bool complete,
                   Rendezvous& rendezvous, TimeMs now);
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
  TimeMs asked_at() const { return asked_at_; }
  void Done() { under_way_ = false; }
  // All are here: who is more than was asked for leaves the job. Requires: ready().
  void Dismiss(Rendezvous& rendezvous);
  // Has left the job as somebody asked for, and may not know it.
  bool dismissed(PeerId peer) const { return dismissed_.contains(peer); }

 private:
  bool under_way_ = false;
  uint32_t servers_ = 0, workers_ = 0;
  PeerId asked_by_;  // Last, and what it was told.
  ScaleReply reply_;
  TimeMs asked_at_ = 0;
  std::set<PeerId> dismissed_;
};

}  // namespace hdps
