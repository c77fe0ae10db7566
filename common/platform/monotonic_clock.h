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

// NowMs() of the system clock; a signal handler may call it.
int64_t SignalSafeNowMs();

// Sleeps on the calling thread. Only injected faults need this.
void StandStill(int64_t ms);

// Returns the milliseconds since 1970, for people and monitoring; no decision depends on it.
int64_t UnixMs();

// Returns the current time as 2026-01-31T23:59:59Z, for people; no decision depends on it.
std::string UtcTimestamp();

}  // namespace hdps
