// A role of the cluster as a state machine, so that a loop or a simulator can run it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/net/frame.h"

namespace hdps {

// Milliseconds of a clock that never goes back; its zero means nothing.
using TimeMs = int64_t;

// Asks the transport to know a peer by this address before the next frame is sent to it.
struct Dial {
  PeerId peer;
  std::string address;
  bool anew = false;  // Also where it is known by this address: nothing has been heard from there.
};

struct Outgoing {
  PeerId to;
  Frame frame;
};

// What a node wants of its loop. Peers that are gone come first, then dials, then frames.
struct Output {
  std::vector<PeerId> hang_ups;  // Nobody wants anything of them any more.
  std::vector<Dial> dials;
  std::vector<Outgoing> frames;  // Sent in this order.
};

// One member of the cluster, without its network, threads or clock: frames and ticks go in, frames
// come out. All calls come from one thread, and none of them blocks.
class Node {
 public:
  virtual ~Node() = default;
  virtual void OnFrame(PeerId from, Frame frame) = 0;  // Something arrived; it passed CheckFrame.
  virtual void OnTick(TimeMs now) = 0;                 // Time passed: retry, expire, beat.
  // What came out since the last call, also of work that the node has given to other threads: the
  // end of such work wakes the loop, which then asks.
  virtual Output TakeOutput() = 0;
  // This process was told to stop: the node sees to it that the cluster ends in good order.
  virtual void RequestStop(const std::string& reason) = 0;

  // The node is finished: the loop sends what is left and returns. exit_status() is then valid.
  virtual bool done() const = 0;
  // 0 done, 2 the operator is mistaken, 3 the world failed; exit_reason() says what happened.
  virtual int exit_status() const = 0;
  virtual const std::string& exit_reason() const = 0;
};

}  // namespace hdps
