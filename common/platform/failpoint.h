// Points in the code at which a test or the flag --faults makes the process crash, stop or fail.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/failpoint_names.h"

namespace hdps {

enum class FailpointAction {
  kCrash,  // SIGKILL: nothing is flushed, closed or logged.
  kExit,   // Exits at once with status 1.
  kSleep,  // The thread sleeps for `sleep_ms`.
  kError,  // The point returns kIoError if it can_fail.
};

// A planned action at a point, from its `first` hit to its `last`, counted from 1.
struct PlannedFailure {
  size_t point = 0;
  FailpointAction action = FailpointAction::kCrash;
  int64_t sleep_ms = 0;
  uint64_t first = 1, last = 1;
};

// Arms the failpoints: from now on each counts its hits, logs the first, and performs the planned
// actions. The plan is global to the process, because failpoints lie where no object of ours is at
// hand. Arm it at the start of a process, or in a test that runs alone.
void ArmFailpoints(std::vector<PlannedFailure> plan);
void DisarmFailpoints();
// Number of hits of `point` since failpoints were armed.
uint64_t FailpointHits(size_t point);

// Arms the plan and disarms it when destroyed.
class ScopedFailpoints {
 public:
  explicit ScopedFailpoints(std::vector<PlannedFailure> plan) { ArmFailpoints(std::move(plan)); }
  ~ScopedFailpoints() { DisarmFailpoints(); }
  ScopedFailpoints(const ScopedFailpoints&) = delete;
  ScopedFailpoints& operator=(const ScopedFailpoints&) = delete;
};

// Ends the process as SIGKILL does.
[[noreturn]] void CrashOnPurpose();

namespace failpoint_internal {
// While no failpoints are armed, each costs one load of this.
inline std::atomic<bool> armed = false;
Status Hit(size_t point);
}  // namespace failpoint_internal

#define HDPS_FAILPOINT(name)                                                              \
  do {                                                                                    \
    constexpr size_t hdps_point_ = ::hdps::FailpointIndex(name);                          \
    if (::hdps::failpoint_internal::armed.load(std::memory_order_relaxed)) [[unlikely]] { \
      static_cast<void>(::hdps::failpoint_internal::Hit(hdps_point_));                    \
    }                                                                                     \
  } while (false)

// The same in a function that returns a Status or Result: it returns the planned error.
#define HDPS_FAILPOINT_OR_RETURN(name)                                                    \
  do {                                                                                    \
    constexpr size_t hdps_point_ = ::hdps::FailingPointIndex(name);                       \
    if (::hdps::failpoint_internal::armed.load(std::memory_order_relaxed)) [[unlikely]] { \
      HDPS_RETURN_IF_ERROR(::hdps::failpoint_internal::Hit(hdps_point_));                 \
    }                                                                                     \
  } while (false)

}  // namespace hdps
