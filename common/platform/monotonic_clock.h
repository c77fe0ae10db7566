// The interface to time: a clock that never goes back.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace hdps {

class MonotonicClock {
 public:
  virtual ~MonotonicClock() = default;
  virtual int64_t NowMs() = 0;
  virtual int64_t NowNs() = 0;
};

std::unique_ptr<MonotonicClock> NewSystemClock();

// NowMs() of a system clock, which a handler of signals may call.
int64_t SignalSafeNowMs();

// The calling thread stands still for so long; only faults on purpose want that.
void StandStill(int64_t ms);

// Now as 2026-01-31T23:59:59Z, for people: it takes part in no decision.
std::string UtcTimestamp();

}  // namespace hdps
