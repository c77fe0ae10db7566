// A member's connection to the scheduler: where it dials, and how long nothing was heard.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/net/node.h"
#include "common/protocol/board_messages.h"
#include "common/protocol/locate/scheduler_locator.h"

namespace hdps {

// Invariant: the scheduler is dialed again when its locator names another address, and when it has
// been silent for three heartbeats and after each doubling of that time. Silence is counted in the
// ticks of this process, so time in which it was stopped does not count.
class SchedulerLink {
 public:
  SchedulerLink(std::shared_ptr<SchedulerLocator> locator, int64_t heartbeat_ms)
      : locator_(std::move(locator)), heartbeat_ms_(heartbeat_ms) {}

  // Adds a dial to `dials` if the scheduler is at another address than before.
  void Look(std::vector<Dial>* dials);
  void CountSilence(TimeMs now) {
    if (last_tick_) silence_ms_ += std::clamp<TimeMs>(now - *last_tick_, 0, heartbeat_ms_);
    last_tick_ = now;
  }
  // Looks for a scheduler that has been silent for long, and dials it again.
  void DialIfSilent(TimeMs now, std::vector<Dial>* dials);
  void Heard() {
    silence_ms_ = 0;
    dial_anew_ms_ = SilenceMs();
  }

  // Returns the time since the scheduler was heard, or since the start before that.
  int64_t silence_ms() const { return silence_ms_; }
  const std::string& address() const { return address_; }  // Empty while none is known.
  // Says what a member waits for that has not joined.
  std::string WhatIsAwaited() const;

 private:
  int64_t SilenceMs() const { return 3 * heartbeat_ms_; }

  const std::shared_ptr<SchedulerLocator> locator_;
  const int64_t heartbeat_ms_;
  std::string address_;
  std::string missing_;  // Why no address was known at the last look.
  std::optional<TimeMs> last_tick_;
  int64_t silence_ms_ = 0;
  int64_t dial_anew_ms_ = SilenceMs();  // Silence after which the scheduler is dialed again.
  Repeat look_;
};

}  // namespace hdps
