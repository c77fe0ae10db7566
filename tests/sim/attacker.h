// Somebody on the network of a simulated cluster who sends changed copies of what he sees.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "common/net/frame.h"
#include "common/platform/random.h"
#include "tests/sim/network.h"

namespace hdps::sim {

// A number in [0, bound), bound > 0: by chance, or out of the bytes of a fuzzer.
using Draw = std::function<uint64_t(uint64_t bound)>;

// Changes a part of the frame: view, request, group, kind, bytes of a part, or how long one is. It
// is sealed again, so that it passes CheckFrame unless it says it shares what it has not.
void Harm(Frame* frame, const Draw& draw);

// Whose number he uses.
enum class AttackAs : uint8_t { kStranger, kMember };

// Watches what nodes are given and, behind about every second frame, sends a changed copy of one
// that he has seen, to its receiver or to another.
//
// Invariant: as a stranger he uses numbers that no process has, and does not know the job's digest.
class Attacker {
 public:
  // `network` must outlive him.
  Attacker(SimNetwork* network, uint64_t seed, AttackAs as);
  uint64_t sent() const { return sent_; }

 private:
  struct Seen {
    PeerId from, to;
    Frame frame;
  };
  void See(PeerId to, PeerId from, const Frame& frame);
  void Attack();

  SimNetwork& network_;
  Random random_;
  const AttackAs as_;
  std::vector<Seen> seen_;  // The last kSeenMax.
  uint64_t seen_in_all_ = 0, sent_ = 0;
};

}  // namespace hdps::sim
