// Decides whether and when a member that has ended is started again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>

#include "common/base/exit_status.h"
#include "common/base/ids.h"

namespace hdps {

// What the parent of a member does after its end: either it starts it again after `wait_ms`, or it
// ends with `exit_status` itself.
struct NextStart {
  std::optional<int64_t> wait_ms;
  int exit_status = kExitDone;
  bool gave_up = false;   // It has died too often.
  bool unwanted = false;  // The job goes on without it.
};

// Keeps the rules of scripts/local_cluster.sh: what was killed, crashed or ended with 3 is started
// again, later and later, and given up when it has died five times in a minute. A scheduler that
// ends with 3 has ended the job.
class RestartPolicy {
 public:
  static constexpr int kDeathsMax = 5;
  static constexpr int64_t kMinuteMs = 60'000;

  explicit RestartPolicy(Role role) : role_(role) {}

  // `status` is the exit status, or 128 and a signal's number; `told` says that the member was told
  // to stop.
  NextStart AfterEnd(int status, bool told, int64_t started_ms, int64_t now_ms) {
    const bool again = !deaths_.empty();
    if (status == kExitDone) return {};
    if (status == kExitMistaken) {
      // A member that was in the job and finds no place any more; the scheduler knows how it ends.
      if (again && role_ != Role::kScheduler) return {std::nullopt, kExitDone, false, true};
      return {std::nullopt, kExitMistaken};
    }
    if (status == kExitFailed && (told || role_ == Role::kScheduler)) {
      return {std::nullopt, kExitFailed};
    }
    std::erase_if(deaths_, [&](int64_t at) { return now_ms - at >= kMinuteMs; });
    deaths_.push_back(now_ms);
    if (deaths_.size() >= kDeathsMax) return {std::nullopt, kExitFailed, true};
    wait_ms_ = now_ms - started_ms >= kMinuteMs ? kFirstWaitMs : 2 * wait_ms_;
    // Status 3 often means that all members end; then the scheduler ends a moment later.
    if (status == kExitFailed) wait_ms_ = std::max(wait_ms_, kWaitAfterFailureMs);
    wait_ms_ = std::min(wait_ms_, kWaitMsMax);
    return {wait_ms_};
  }

 private:
  static constexpr int64_t kFirstWaitMs = 200, kWaitAfterFailureMs = 1000, kWaitMsMax = 10'000;

  const Role role_;
  std::deque<int64_t> deaths_;  // Times of the deaths of the last minute.
  int64_t wait_ms_ = kFirstWaitMs / 2;
};

}  // namespace hdps
