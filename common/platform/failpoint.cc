// Counts hits of failpoints and performs the planned actions.
#include "common/platform/failpoint.h"

#include <glog/logging.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <utility>

#include "common/base/thread_annotations.h"
#include "common/platform/monotonic_clock.h"

namespace hdps {
namespace {

constexpr size_t kPoints = kFailpointNames.size();

// Invariant: hits_ counts since the last Arm().
class Plan {
 public:
  void Arm(std::vector<PlannedFailure> plan) HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    plan_ = std::move(plan);
    hits_.fill(0);
  }
  uint64_t hits(size_t point) HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return hits_[point];
  }
  struct Due {
    bool first = false;
    std::optional<PlannedFailure> failure;
  };
  Due Count(size_t point) HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const uint64_t hit = ++hits_[point];
    Due due;
    due.first = hit == 1;
    for (const PlannedFailure& failure : plan_) {
      if (failure.point == point && failure.first <= hit && hit <= failure.last) {
        due.failure = failure;
      }
    }
    return due;
  }

 private:
  Mutex mutex_;
  std::vector<PlannedFailure> plan_ HDPS_GUARDED_BY(mutex_);
  std::array<uint64_t, kPoints> hits_ HDPS_GUARDED_BY(mutex_) = {};
};

// Never destroyed: threads may pass failpoints while the process ends.
Plan& ThePlan() {
  static Plan* const plan = new Plan;
  return *plan;
}

}  // namespace

void ArmFailpoints(std::vector<PlannedFailure> plan) {
  ThePlan().Arm(std::move(plan));
  failpoint_internal::armed.store(true);
}

void DisarmFailpoints() { failpoint_internal::armed.store(false); }

uint64_t FailpointHits(size_t point) { return ThePlan().hits(point); }

void CrashOnPurpose() {
  ::kill(::getpid(), SIGKILL);
  std::abort();  // Not reached.
}

namespace failpoint_internal {

Status Hit(size_t point) {
  const std::string name(kFailpointNames[point].name);
  const Plan::Due due = ThePlan().Count(point);
  if (due.first) LOG(INFO) << "faults: reached " << name;
  if (!due.failure) return {};
  switch (due.failure->action) {
    case FailpointAction::kCrash:
      LOG(WARNING) << "faults: crash on purpose at " << name;
      CrashOnPurpose();
    case FailpointAction::kExit:
      LOG(WARNING) << "faults: exit on purpose at " << name;
      std::_Exit(1);
    case FailpointAction::kSleep:
      LOG(WARNING) << "faults: stands still on purpose at " << name << " for "
                   << due.failure->sleep_ms << " ms";
      StandStill(due.failure->sleep_ms);
      return {};
    case FailpointAction::kError:
      break;
  }
  LOG(WARNING) << "faults: fails on purpose at " << name;
  return {Code::kIoError, "failpoint " + name + ": fails on purpose"};
}

}  // namespace failpoint_internal

}  // namespace hdps
