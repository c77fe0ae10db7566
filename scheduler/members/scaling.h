// Changes the numbers of servers and workers that the operator asks for while the job runs.
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
struct View;

// Limit for one role; more than a view can name.
inline constexpr int64_t kMembersMax = 1 << 16;

// New members join while the job goes on. When all have come, or none is awaited, the members
// change at the next point at which all workers stand at one clock.
//
// Invariant: under_way() from an accepted request until Done() or Dismiss(); the targets fit the
// job. A repeated request gets the same answer.
class Scaling {
 public:
  struct Answer {
    ScaleReply reply;
    bool accepted = false;  // This call accepted the request.
  };
  // Answers a request of `from`. `view`: that of the job; null while a member is missing, so that
  // it has to be asked again. Members who have come are not in the view if their move has failed.
  Answer OnRequest(PeerId from, const ScaleRequest& request, const Job& job, const View* view,
                   Rendezvous& rendezvous, TimeMs now);
  // Opens places for new members in `rendezvous`. kInvalidArgument says what would be valid, and
  // nothing has changed then. Returns a sentence for the requester.
  Result<std::string> Accept(const Job& job, const ScaleRequest& request, const View& view,
                             Rendezvous& rendezvous);

  // Continues a scaling that a former scheduler process had accepted.
  void Continue(uint32_t servers, uint32_t workers, Rendezvous& rendezvous);

  bool under_way() const { return under_way_; }
  // Is true if no new member is awaited any more.
  bool ready(const Rendezvous& rendezvous) const {
    return rendezvous.Count(Role::kServer) >= servers_ &&
           rendezvous.Count(Role::kWorker) >= workers_;
  }
  uint32_t servers() const { return servers_; }
  uint32_t workers() const { return workers_; }
  TimeMs asked_at() const { return asked_at_; }
  void Done() { under_way_ = false; }
  // Removes members beyond the requested numbers, once all have come. Requires: ready().
  void Dismiss(Rendezvous& rendezvous);
  // Is true for a member that scaling removed; it may not know that yet.
  bool dismissed(PeerId peer) const { return dismissed_.contains(peer); }

 private:
  bool under_way_ = false;
  uint32_t servers_ = 0, workers_ = 0;
  PeerId asked_by_;  // Sender of the last request, and its reply below.
  ScaleReply reply_;
  TimeMs asked_at_ = 0;
  std::set<PeerId> dismissed_;
};

}  // namespace hdps
