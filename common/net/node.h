// The interface of a role as a state machine, so that a loop or a simulator can run it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/net/frame.h"

namespace hdps {

// Milliseconds of a clock that never goes back. Its origin is arbitrary.
using TimeMs = int64_t;

// Asks the transport to connect to a peer before the next frame is sent to it.
struct Dial {
  PeerId peer;
  std::string address;
  bool anew = false;  // Redial even a known address, because nothing was heard from there.
};

struct Outgoing {
  PeerId to;
  Frame frame;
};

// The requests of a node to its loop. The loop handles closed peers first, then dials, then frames.
struct Output {
  std::vector<PeerId> hang_ups;  // Peers whose connections are closed.
  std::vector<Dial> dials;
  std::vector<Outgoing> frames;  // Frames, sent in this order.
};

// One member of the cluster without its network, threads and clock: frames and ticks go in, frames
// come out. All calls come from one thread, and none of them blocks.
class Node {
 public:
  virtual ~Node() = default;
  virtual void OnFrame(PeerId from, Frame frame) = 0;  // Takes a frame that has passed CheckFrame.
  virtual void OnTick(TimeMs now) = 0;  // Takes the time, to retry, expire and send heartbeats.
  // Returns the output since the last call. That includes results of work that the node has given
  // to other threads; such work wakes the loop when it is done.
  virtual Output TakeOutput() = 0;
  // Takes the request to stop: the node lets the cluster end in good order.
  virtual void RequestStop(const std::string& reason) = 0;
  // Takes the request to leave the cluster, which goes on: the node hands over what it can, for
  // `within_ms` at most, and ends with status 3. A node that has nothing to hand over just stops.
  virtual void RequestLeave(const std::string& reason, TimeMs within_ms) {
    static_cast<void>(within_ms);
    RequestStop(reason);
  }

  // Is true once the node is finished: the loop sends what is left and returns. Then exit_status()
  // is valid.
  virtual bool done() const = 0;
  // Returns 0 if done, 2 if the operator is mistaken, 3 if the world failed; exit_reason()
  // explains.
  virtual int exit_status() const = 0;
  virtual const std::string& exit_reason() const = 0;
};

}  // namespace hdps
