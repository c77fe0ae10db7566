// A member of a simulated cluster that sends one message with a field at an extreme.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "common/net/frame.h"
#include "tests/sim/extremes/extreme_messages.h"
#include "tests/sim/network.h"

namespace hdps::sim {

// What a worker says of itself in every run is changed as it leaves it, once; all else it sends
// beside its own messages, to `to`, as a copy of what it has seen of that kind.
//
// Invariant: after one message the worker is as any other.
class ExtremeMember {
 public:
  // The `nth` of these messages from `worker`, or one beside its `nth` heartbeat. Network and
  // messages must outlive it.
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
  std::map<uint16_t, Frame> seen_;  // The newest of each kind, those of the worker before others.
};

}  // namespace hdps::sim
