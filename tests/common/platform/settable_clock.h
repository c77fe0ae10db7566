// A clock whose time a test sets, also while other threads read it.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/platform/monotonic_clock.h"

namespace hdps {

class SettableClock : public MonotonicClock {
 public:
  int64_t NowMs() override { return now_ms; }
  int64_t NowNs() override { return now_ms * 1'000'000; }
  std::atomic<int64_t> now_ms = 5000;
};

}  // namespace hdps
