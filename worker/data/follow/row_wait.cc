// Waits on a condition that only a stop fulfils early.
#include "worker/data/follow/row_wait.h"

#include <chrono>
#include <utility>

#include "common/base/thread_annotations.h"

namespace hdps {
namespace {

class PollingWait : public RowWait {
 public:
  explicit PollingWait(std::function<void(const std::string& behind)> tell)
      : tell_(std::move(tell)) {}

  bool Wait(const std::string& behind) override HDPS_EXCLUDES(mutex_) {
    if (tell_) tell_(behind);
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(kFollowEveryMs);
    MutexLock lock(mutex_);
    while (!stopped_) {
      if (changed_.wait_until(mutex_, until) == std::cv_status::timeout) break;
    }
    return !stopped_;
  }
  void End() override {
    if (tell_) tell_("");
  }
  void Stop() override HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }

 private:
  const std::function<void(const std::string& behind)> tell_;
  Mutex mutex_;
  ConditionVariable changed_;
  bool stopped_ HDPS_GUARDED_BY(mutex_) = false;
};

}  // namespace

std::shared_ptr<RowWait> NewPollingWait(std::function<void(const std::string& behind)> tell) {
  return std::make_shared<PollingWait>(std::move(tell));
}

}  // namespace hdps
