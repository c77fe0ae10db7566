// Copies of a member's figures that its loop puts out, for whoever watches it on another thread.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "common/telemetry/figure_layout.h"
#include "common/telemetry/published.h"

namespace hdps {

// What a member knows of itself at one moment.
struct MemberCopy {
  int64_t made_ms = 0;  // By the clock of the member's loop.
  bool joined = false;  // It is a member of a view.
  uint32_t rank = 0;    // Its rank, once it has joined.
  Readings readings;
};

// Invariant: a copy is at most kCopyMs older than the last turn of the loop, and the loop makes no
// more than one in kCopyMs. No thread waits for another.
class MemberWatch {
 public:
  static constexpr int64_t kCopyMs = 100;

  // Called by the loop in every turn; `make` returns a MemberCopy, whose time is set here.
  template <typename Make>
  void OnTurn(int64_t now_ms, const Make& make) {
    if (now_ms >= next_ms_) PutOut(now_ms, make());
  }
  // Puts a copy out at once: the last one of a member that has ended.
  void PutOut(int64_t now_ms, MemberCopy copy) {
    next_ms_ = now_ms + kCopyMs;
    copy.made_ms = now_ms;
    copies_.Put(std::make_shared<const MemberCopy>(std::move(copy)));
  }
  // Returns the last copy, on any thread; null before the first.
  std::shared_ptr<const MemberCopy> Get() const { return copies_.Get(); }

 private:
  int64_t next_ms_ = 0;  // Used by the loop alone.
  Published<MemberCopy> copies_;
};

}  // namespace hdps
