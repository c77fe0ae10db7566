// Runs the scheduler and the servers of a cluster in one process; its workers come as they like.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/exit_status.h"
#include "common/base/status.h"
#include "common/base/thread_annotations.h"
#include "common/net/transport.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "common/platform/programs/program.h"
#include "common/protocol/membership_client.h"
#include "scheduler/scheduler_node.h"
#include "tools/local_cluster.h"

namespace hdps {

// Keeps the first failure of the members, which run on their own threads.
class FirstFailure {
 public:
  void Note(const std::string& who, const ProcessEnd& end) HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (end.status != 0 && exit_.status == 0) exit_ = {end.status, who + ": " + end.reason};
  }
  ProcessEnd Get() HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return exit_;
  }

 private:
  Mutex mutex_;
  ProcessEnd exit_ HDPS_GUARDED_BY(mutex_);
};

// The members are connected in memory by hub().
//
// Invariant: the servers run from Start() on, and have ended when Run() returns.
class ServedJob {
 public:
  // Starts the servers. Errors: as SchedulerNode::Make. Requires: all outlive it.
  static Result<std::unique_ptr<ServedJob>> Start(const LocalClusterOptions& options,
                                                  FileSystem& files, MonotonicClock& clock);

  // Runs the scheduler on the calling thread until the job is over. Must be called once.
  ProcessEnd Run();

  const std::shared_ptr<InprocHub>& hub() const { return hub_; }
  // Returns the identity of a new member of the job.
  NodeIdentity Identity(uint32_t rank) const;
  // Ends the job with a member's failure; a member that ends before it has joined cannot report to
  // the scheduler. Does nothing if the member has not failed. Safe on any thread.
  void Ended(const std::string& who, const ProcessEnd& end);

 private:
  ServedJob(const LocalClusterOptions& options, FileSystem& files, MonotonicClock& clock);
  ProcessEnd RunServer(uint32_t rank);

  const LocalClusterOptions& options_;
  FileSystem& files_;
  MonotonicClock& clock_;
  const std::shared_ptr<InprocHub> hub_ = NewInprocHub();
  const std::unique_ptr<Transport> transport_;  // The scheduler's.
  const std::unique_ptr<Programs> programs_ = NewPosixPrograms();
  std::unique_ptr<SchedulerNode> scheduler_;
  FirstFailure failure_;
  std::vector<std::unique_ptr<Thread>> servers_;
};

}  // namespace hdps
