// Attacks a simulated cluster: sends changed copies of the frames on its network.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "common/net/frame.h"
#include "common/platform/random.h"
#include "tests/sim/network.h"

namespace hdps::sim {

// Returns a number in [0, bound), bound > 0, from a random generator or from a fuzzer's bytes.
using Draw = std::function<uint64_t(uint64_t bound)>;

// Changes a part of the frame: view, request, group, kind, bytes of a part, or the length of a
// part. Then computes its checksum again, so that it passes CheckFrame, unless it claims shared
// sections that it does not have.
void Harm(Frame* frame, const Draw& draw);

// The sender whose peer id the attacker uses.
enum class AttackAs : uint8_t { kStranger, kMember };

// Watches the frames that nodes receive. After about every second one it sends a changed copy of a
// frame it has seen, to that frame's receiver or another node.
//
// Invariant: as a stranger it uses peer ids of no process, and does not know the job's digest.
class Attacker {
 public:
  // Requires: `network` outlives it.
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
  std::vector<Seen> seen_;  // The newest kSeenMax frames.
  uint64_t seen_in_all_ = 0, sent_ = 0;
};

}  // namespace hdps::sim
