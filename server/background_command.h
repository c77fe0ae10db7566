// A command that takes long, carried out beside the loop.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "common/executor.h"
#include "common/messages.h"
#include "common/thread_annotations.h"
#include "server/shard_set.h"

namespace hdps {

// Invariant: at most one command runs at a time, and none outlives this object: what `work` refers
// to need only outlive it too. While running() nobody else may touch what `work` touches.
class BackgroundCommand {
 public:
  struct Outcome {
    CommandDone done;
    std::unique_ptr<ShardSet> loaded;  // kLoad: the shards from now on.
  };

  ~BackgroundCommand();

  // Requires: not running().
  void Start(Executor& executor, std::function<Outcome()> work);
  bool running() const { return running_; }
  // The outcome, once, when the command has ended.
  std::optional<Outcome> Poll() HDPS_EXCLUDES(mutex_);

 private:
  bool running_ = false;  // Belongs to the loop: set by Start, cleared by Poll.

  Mutex mutex_;
  ConditionVariable ended_;
  std::optional<Outcome> outcome_ HDPS_GUARDED_BY(mutex_);
};

}  // namespace hdps
