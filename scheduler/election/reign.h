// The time in which this process leads, and what bounds it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/base/exit_status.h"
#include "common/base/thread_annotations.h"
#include "common/election/etcd.h"
#include "common/platform/executor.h"
#include "common/platform/monotonic_clock.h"
#include "common/platform/threads/pause.h"
#include "scheduler/election/election.h"

namespace hdps {

// Keeps the lease of a leader on a thread of its own.
//
// Invariant: once holds() was false it stays so, and the election takes it for lost.
class Reign {
 public:
  // Continues the election of `election`, which leads. The clock must outlive this object.
  Reign(std::unique_ptr<Etcd> etcd, Election election, MonotonicClock& clock);
  ~Reign();

  uint64_t number() const { return number_; }
  // Returns whether this process may still write and command; from any thread.
  bool holds();
  // Returns the end of a process that has lost its lead.
  std::optional<ProcessEnd> Lost() HDPS_EXCLUDES(mutex_);
  // Ends the job for the candidates, or lets one of them lead at once. Returns a warning, or an
  // empty text. Call one of them, once.
  std::string EndJob(const ProcessEnd& end) HDPS_EXCLUDES(mutex_);
  std::string Leave() HDPS_EXCLUDES(mutex_);

 private:
  void Keep() HDPS_EXCLUDES(mutex_);  // The body of the thread.
  std::string LastRequest(const EtcdRequest& request, const std::string& otherwise);

  MonotonicClock& clock_;
  const std::unique_ptr<Etcd> etcd_;  // Of the thread while it runs.
  const uint64_t number_;
  std::atomic<TimeMs> until_;
  std::atomic<bool> lost_ = false;
  Pause pause_;
  Mutex mutex_;
  Election election_ HDPS_GUARDED_BY(mutex_);
  std::unique_ptr<Thread> thread_;
};

// Tells what became of a candidate: it leads, or its process ends.
struct Elected {
  std::unique_ptr<Reign> reign;  // Null: `end` tells.
  ProcessEnd end;
};
// Waits until this process leads, until the job has ended, until `stop` is set, or until etcd has
// not answered for the options' patience. `notice` gets lines that tell what is waited for. Errors:
// kInvalidArgument if etcd refuses this client; kUnavailable if it did not answer.
Result<Elected> AwaitReign(std::unique_ptr<Etcd> etcd, const ElectionOptions& options,
                           MonotonicClock& clock, const std::atomic<bool>& stop,
                           const std::function<void(const std::string&)>& notice);

}  // namespace hdps
