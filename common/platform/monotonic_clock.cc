// The machine's clocks.
#include "common/platform/monotonic_clock.h"

#include <chrono>
#include <ctime>
#include <thread>

namespace hdps {

namespace {

class SystemClock : public MonotonicClock {
 public:
  int64_t NowMs() override { return NowNs() / 1'000'000; }
  int64_t NowNs() override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
};

}  // namespace

std::unique_ptr<MonotonicClock> NewSystemClock() { return std::make_unique<SystemClock>(); }

int64_t SignalSafeNowMs() {
  timespec time{};
  // One of the functions that POSIX allows in a signal handler.
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1000 + time.tv_nsec / 1'000'000;
}

void StandStill(int64_t ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

int64_t UnixMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string UtcTimestamp() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace hdps
