// Takes a trace of some steps of the running job, for a client that asks for it.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "common/net/node.h"
#include "common/protocol/membership_messages.h"
#include "common/protocol/trace/trace_messages.h"

namespace hdps {

class Membership;

// Tells members what to record, and keeps what they send until the client has taken it.
//
// Invariant: one trace at a time. It ends when every member has sent its last part, when the job
// or the patience ends, and is forgotten when its client is silent. Parts that wait for the client
// have at most kBytesMax; those beyond are left out, and that is said.
class TraceCollection {
 public:
  static constexpr uint64_t kBytesMax = uint64_t{256} << 20;

  // Answers a request; the first one of a number begins a trace. `members`: null before the first
  // view.
  TraceReply OnRequest(const TraceRequest& request, const Membership* members, TimeMs now);
  void OnPart(PeerId from, const std::string& name, TracePart part);
  void OnTick(const Membership& members, TimeMs now);
  // Forgets a client that is silent.
  void OnTick(TimeMs now);
  // Ends the recording early because of `why`: "the job has ended".
  void Close(const std::string& why);
  // Ends the trace with what has arrived, because no member sends more.
  void End(const std::string& why);

  const TraceOrder& order() const { return order_; }
  // Returns true once after the order has changed: all members are told.
  bool TakeChanged() { return std::exchange(changed_, false); }
  // Is true while a client still has to take parts.
  bool awaited() const { return active() && whole_; }

 private:
  struct Part {
    std::string member;
    TracePart part;
  };

  bool active() const { return order_.trace != 0; }
  void Begin(const TraceRequest& request, const Membership& members, TimeMs now);
  void BeginRecording(Clock furthest, TimeMs now);
  void SetPhase(TracePhase phase, TimeMs now);
  void Forget();

  TraceOrder order_;
  uint32_t steps_ = 0;
  bool changed_ = false;
  bool whole_ = false;
  TimeMs asked_at_ = 0, now_ = 0;
  TimeMs since_ = 0;          // Of the phase.
  TimeMs moved_at_ = 0;       // When a step ended last.
  Clock slowest_ = 0;         // Clock of the slowest worker then.
  TimeMs measured_at_ = 0;    // When the clock of the furthest worker was `measured_`.
  Clock measured_ = -1;       // -1: not measured.
  uint32_t restarts_ = 0;     // View::restarts at the beginning.
  TimeMs reached_at_ = 0;     // When every worker had ended the steps; 0: not yet.
  std::set<PeerId> awaited_;  // Members that have not sent their last part.
  std::vector<std::string> missing_;
  std::deque<Part> parts_;  // Not taken yet.
  uint64_t taken_ = 0;      // Parts before those.
  uint64_t bytes_ = 0;      // Of parts_.
  uint64_t parts_left_out_ = 0;
};

}  // namespace hdps
