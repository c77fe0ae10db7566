// Records which pushes (or stores) of one worker were taken, so that a repeat is not taken twice.
#pragma once

#include <glog/logging.h>

#include <cstddef>
#include <set>

#include "common/base/ids.h"

namespace hdps {

// Remembers the last `window` sequence numbers. A worker sends a push only while fewer than
// `window` of its earlier ones are unacknowledged at this server, so the ledger always holds every
// unacknowledged push that was taken. Older pushes were acknowledged, and a repeat of one comes
// from the network. Gaps are allowed: a server that joins in the middle of a job has not seen the
// beginning.
//
// Invariant: a recorded sequence is never kFirst again. At most `window` are remembered.
//
// Used only from the loop of one ServerNode.
class PushLedger {
 public:
  enum class Verdict {
    kFirst,   // Not taken yet.
    kRepeat,  // Taken: acknowledge it again.
    kTooOld,  // Below the window: cannot be checked, and no worker waits for it; refuse it.
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
    left_out_.erase(left_out_.begin(), left_out_.lower_bound(floor_));
    CHECK_EQ(taken_.size(), window_);
  }

  // Notes that the gradients of a recorded push were left out, so that a repeat is told the same.
  void LeaveOut(Sequence sequence) { left_out_.insert(sequence); }
  bool WasLeftOut(Sequence sequence) const { return left_out_.contains(sequence); }

  size_t size() const { return taken_.size(); }
  Sequence floor() const { return floor_; }

 private:
  const size_t window_;
  Sequence floor_;  // Lower bound of taken_.
  std::set<Sequence> taken_;
  std::set<Sequence> left_out_;  // Some of taken_.
};

}  // namespace hdps
