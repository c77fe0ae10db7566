// Decides whose frames a server reads.
#pragma once

#include <unordered_set>

#include "common/base/ids.h"
#include "common/protocol/view.h"

namespace hdps {

// Admits all frames of the members of the server's view, and a few frames in each tick from all
// other peers together, so that strangers cannot take a server's time. A member of a later view
// repeats its frame; a frame beyond the few costs as little as a damaged one.
class HeardMembers {
 public:
  void OnView(const View& view) {
    members_.clear();
    for (const Member& worker : view.workers) members_.insert(worker.peer.value);
    for (const Member& holder : view.Holders()) members_.insert(holder.peer.value);
  }
  void OnTick() { others_left_ = kOthersPerTick; }

  bool Has(PeerId peer) const { return members_.contains(peer.value); }
  // Returns whether to read the next frame of `from`; counts it if `from` is not a member.
  bool Hears(PeerId from) { return Has(from) || --others_left_ >= 0; }

 private:
  static constexpr int kOthersPerTick = 16;
  std::unordered_set<uint64_t> members_;
  int others_left_ = kOthersPerTick;
};

}  // namespace hdps
