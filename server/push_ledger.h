// Which pushes (or stores) of one worker have been taken, so that a repeat is not taken twice.
#pragma once

#include <glog/logging.h>

#include <cstddef>
#include <set>

#include "common/base/ids.h"

namespace hdps {

// Remembers the last `window` sequences it was given. A worker sends a push only while fewer than
// `window` of its earlier ones are unacknowledged at this server, so an unacknowledged push is
// always among them; what is older was acknowledged, and its repeat comes from the network. Gaps
// are allowed: a server that starts in the middle of a job sees no beginning.
//
// Invariant: a sequence that was recorded is never kFirst again. At most `window` are remembered.
//
// Belongs to one ServerNode and is used only from its loop.
class PushLedger {
 public:
  enum class Verdict {
    kFirst,   // Not taken yet.
    kRepeat,  // Taken: acknowledge it again.
    kTooOld,  // Below the window: nobody can wait for it, and nobody knows it; refuse it.
  };

  explicit PushLedger(size_t window) : window_(window) { CHECK_GT(window, 0u); }

  Verdict Check(Sequence sequence) const {
    if (taken_.count(sequence) > 0) return Verdict::kRepeat;
    return sequence < floor_ ? Verdict::kTooOld : Verdict::kFirst;
  }

  // Requires: Check(sequence) is kFirst.
  void Record(Sequence sequence) {
    CHECK(sequence >= floor_ && taken_.insert(sequence).second) << sequence.value;
    if (taken_.size() <= window_) return;
    floor_ = {taken_.begin()->value + 1};
    taken_.erase(taken_.begin());
    CHECK_EQ(taken_.size(), window_);
  }

  size_t size() const { return taken_.size(); }
  Sequence floor() const { return floor_; }

 private:
  const size_t window_;
  Sequence floor_;  // All of taken_ is at or above it.
  std::set<Sequence> taken_;
};

}  // namespace hdps
