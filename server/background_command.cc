// Hands a command to the executor and its outcome back to the loop.
#include "server/background_command.h"

#include <glog/logging.h>

#include <utility>

namespace hdps {

BackgroundCommand::~BackgroundCommand() {
  if (!running_) return;
  MutexLock lock(mutex_);
  while (!outcome_.has_value()) ended_.wait(mutex_);
}

void BackgroundCommand::Start(Executor& executor, std::function<Outcome()> work) {
  CHECK(!running_) << "one command at a time";
  running_ = true;
  executor.Submit([this, work = std::move(work)] {
    Outcome outcome = work();
    MutexLock lock(mutex_);
    outcome_ = std::move(outcome);
    ended_.notify_all();  // Under the lock: after it, this object may be gone.
  });
}

std::optional<BackgroundCommand::Outcome> BackgroundCommand::Poll() {
  if (!running_) return std::nullopt;
  MutexLock lock(mutex_);
  if (!outcome_.has_value()) return std::nullopt;
  running_ = false;
  return std::exchange(outcome_, std::nullopt);
}

}  // namespace hdps
