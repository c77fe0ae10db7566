// Waits for a time that a stop ends early.
#include "worker/data/follow/row_wait.h"

#include <utility>

#include "common/platform/threads/pause.h"

namespace hdps {
namespace {

class PollingWait : public RowWait {
 public:
  explicit PollingWait(std::function<void(const std::string& behind)> tell)
      : tell_(std::move(tell)) {}

  bool Wait(const std::string& behind) override {
    if (tell_) tell_(behind);
    return pause_.For(kFollowEveryMs);
  }
  void End() override {
    if (tell_) tell_("");
  }
  void Stop() override { pause_.End(); }

 private:
  const std::function<void(const std::string& behind)> tell_;
  Pause pause_;
};

}  // namespace

std::shared_ptr<RowWait> NewPollingWait(std::function<void(const std::string& behind)> tell) {
  return std::make_shared<PollingWait>(std::move(tell));
}

}  // namespace hdps
