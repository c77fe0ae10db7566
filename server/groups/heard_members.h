// Whose frames a server looks at.
#pragma once

#include <unordered_set>

#include "common/base/ids.h"
#include "common/protocol/view.h"

namespace hdps {

// The members of the view that a server knows; and of all others so few frames that their answers
// cost nobody else his. A member of a view to come asks again; each further frame costs as little
// as one that is damaged.
class HeardMembers {
 public:
  void OnView(const View& view) {
    members_.clear();
    for (const Member& worker : view.workers) members_.insert(worker.peer.value);
    for (const Member& holder : view.Holders()) members_.insert(holder.peer.value);
  }
  void OnTick() { others_left_ = kOthersPerTick; }

  bool Has(PeerId peer) const { return members_.contains(peer.value); }
  // Whether the next frame of `from` is worth a look.
  bool Hears(PeerId from) { return Has(from) || --others_left_ >= 0; }

 private:
  static constexpr int kOthersPerTick = 16;
  std::unordered_set<uint64_t> members_;
  int others_left_ = kOthersPerTick;
};

}  // namespace hdps
