// The groups that a worker forms with the others of its view, and the end of waits in them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/base/thread_annotations.h"
#include "common/protocol/membership_messages.h"
#include "worker/collective/collective.h"
#include "worker/exchange/activity_board.h"

namespace hdps {

struct View;

struct Job;

// Invariant: each group kept here has been aborted after Abort(), and after an Interrupt() if its
// view is older. So no wait outlives the job, its return to a checkpoint, or a replaced worker.
//
// Belongs to the trainer's thread, except Abort() and Interrupt().
class WorkerGroups {
 public:
  // Requires: all arguments outlive it. `host`: address at which the other ranks reach this one.
  WorkerGroups(const Job& job, std::string host, RendezvousStore& store, ActivityBoard& board);

  // ---- The group of all workers that sums dense gradients and gradients of cached rows.

  Collective* sum() const { return sum_.get(); }  // Null if there is none.
  bool SumIsOf(const View& view) const;
  // Connects the workers of the view; values lie on `gpu`, or on the host if it is -1. KeepSum()
  // makes the group sum(), once the old one is unused.
  Result<std::unique_ptr<Collective>> FormSum(const View& view, uint32_t rank, int gpu);
  void KeepSum(const View& view, std::unique_ptr<Collective> group) HDPS_EXCLUDES(mutex_);
  void LeaveSum() HDPS_EXCLUDES(mutex_);

  // ---- More groups of all workers, one for each lane that may wait for others at the same time.

  // False also for a view of one worker, which needs none.
  bool LanesAreOf(const View& view) const;
  // Requires: the old groups are unused.
  Status FormLanes(const View& view, uint32_t rank, int gpu) HDPS_EXCLUDES(mutex_);
  std::vector<Collective*> lanes() const;
  void LeaveLanes() HDPS_EXCLUDES(mutex_);

  // Is true if there is a group, so that a failed call may mean that another rank is gone.
  bool any() const { return sum_ != nullptr || !lanes_.empty(); }
  // Marks the groups as unfit for the next steps, although their workers are the same.
  void Outdate();
  // Counts of every sum() so far, and of the current lanes.
  CollectiveCounts counts() const;

  // ---- Any thread.

  // Ends every wait for the other ranks, for good.
  void Abort() HDPS_EXCLUDES(mutex_);
  // Ends them in the groups of views before this one: the job goes back to a checkpoint, or other
  // workers have come.
  void Interrupt(ViewId view) HDPS_EXCLUDES(mutex_);

 private:
  CollectiveOptions OptionsOf(const View& view, uint32_t rank, int gpu) const;
  // Aborts the groups that must not wait any more.
  void AbortOld() HDPS_REQUIRES(mutex_);

  const Job& job_;
  const std::string host_;
  RendezvousStore& store_;
  ActivityBoard& board_;

  // Changed under the mutex, and only by the trainer's thread.
  std::unique_ptr<Collective> sum_;
  std::vector<std::unique_ptr<Collective>> lanes_;
  // The trainer's thread only.
  std::vector<PeerId> sum_members_, lane_members_;  // Empty: outdated.
  CollectiveCounts left_counts_;                    // Counts of former sum_ groups.

  Mutex mutex_;
  bool aborted_ HDPS_GUARDED_BY(mutex_) = false;
  ViewId interrupted_ HDPS_GUARDED_BY(mutex_);  // The newest of Interrupt().
  // The views of the present groups.
  ViewId sum_view_ HDPS_GUARDED_BY(mutex_), lanes_view_ HDPS_GUARDED_BY(mutex_);
};

}  // namespace hdps
