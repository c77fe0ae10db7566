// Makes a member of a simulated cluster send one message with a field at an extreme.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "common/net/frame.h"
#include "tests/sim/extremes/extreme_messages.h"
#include "tests/sim/network.h"

namespace hdps::sim {

// Changes one message of a worker. Messages that workers send in every run are changed on their
// way, once. Other messages are sent in addition, to `to`, as a changed copy of one seen on the
// network.
//
// Invariant: after this message the worker behaves like any other.
class ExtremeMember {
 public:
  // Changes the `nth` message of this kind from `worker`, or sends one with its `nth` heartbeat.
  // Requires: network and messages outlive it.
  ExtremeMember(SimNetwork* network, const ExtremeMessages& messages, const Extreme& extreme,
                PeerId worker, std::vector<PeerId> to, uint32_t nth);
  bool sent() const { return sent_; }

 private:
  void See(PeerId from, Frame* frame);

  SimNetwork& network_;
  const ExtremeMessages& messages_;
  const Extreme extreme_;
  const PeerId worker_;
  const std::vector<PeerId> to_;
  uint32_t left_;
  bool sent_ = false;
  std::map<uint16_t, Frame> seen_;  // Newest frame of each kind, preferably from the worker.
};

}  // namespace hdps::sim
