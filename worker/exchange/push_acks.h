// Awaits what servers answer to the pushes of a worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "common/base/ids.h"
#include "common/base/square_sum.h"
#include "common/base/status.h"
#include "common/protocol/manifest_parts.h"
#include "common/protocol/tallies.h"
#include "worker/exchange/node_channel.h"

namespace hdps {

// Keeps the pushes that servers have not acknowledged, oldest first. Belongs to the thread that
// computes.
class PushAcks {
 public:
  // Requires: `channel` outlives it.
  explicit PushAcks(NodeChannel& channel) : channel_(channel) {}

  // `examples`: of the step, in which the push of one key list counts them.
  void Add(Ticket push, uint64_t examples) {
    pushes_.push_back({push, channel_.NowNs(), examples});
  }
  // Handles the acknowledgements that have come, and waits while more than `left` are missing.
  // Errors: that of a server which refused a push.
  Status Collect(size_t left);
  void Forget() { pushes_.clear(); }  // The job has gone back: no acknowledgement will come.

 private:
  struct SentPush {
    Ticket ticket;
    int64_t sent_ns = 0;
    uint64_t examples = 0;
  };

  NodeChannel& channel_;
  std::deque<SentPush> pushes_;
};

// Where a place in the job stands that another process had before.
struct PlaceStand {
  Clock clock = 0;      // Every server has all pushes of the steps before this one.
  Clock announced = 0;  // Every server knows that the place has finished the steps before this one.
  Clock reached = 0;    // No server has a push of this step, or of one behind it.
  RoundCounts counts;   // Of the round, with the steps before `clock`, or before the one asked for.
  // These are the messages of a topic that each of the place's newest steps has, by step, as far as
  // some server has a push of the step.
  std::map<Clock, std::vector<PartitionSpan>> messages = {};
};

// Asks the servers where this worker's place stands; the counts are those before step `counted`, 0:
// before PlaceStand::clock.
Result<PlaceStand> AskStand(NodeChannel& channel, Clock counted = 0);
// Reports to the servers the steps that the place has finished, which the process before may not
// have done. `clips_all`: train.clip_norm in sync mode, where each of these steps is announced with
// the sum of its squares, once all workers have pushed it; a server would apply it unclipped
// otherwise.
// Calls announced(clock) after each.
Status AnnounceStand(NodeChannel& channel, const PlaceStand& stand, bool clips_all,
                     const std::function<void(Clock)>& announced);

// Waits for the replies to SquaresRequests(), and adds them: the sum of squares of a step's
// gradients at all servers.
Result<SquareSum> AwaitSquares(NodeChannel& channel, Ticket asked);

}  // namespace hdps
