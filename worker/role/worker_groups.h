// The groups that a worker forms with the others of its view, and how a wait in them ends.
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

// Invariant: after Abort(), and after an Interrupt() for every group of an older view, each group
// that is kept here has been aborted: no wait outlives the job, or the checkpoint it goes back to.
//
// Belongs to the trainer's thread, but for Abort() and Interrupt().
class WorkerGroups {
 public:
  // All of them outlive it. `host`: where the other ranks reach this one.
  WorkerGroups(const Job& job, std::string host, RendezvousStore& store, ActivityBoard& board);

  // ---- The group of all workers, in which dense gradients and kept rows are summed.

  Collective* sum() const { return sum_.get(); }  // Null: there is none.
  bool SumIsOf(const View& view) const;
  // Meets the workers of the view; values lie on `gpu`, -1: on the host. The group becomes sum()
  // by KeepSum(), once nobody uses the one before.
  Result<std::unique_ptr<Collective>> FormSum(const View& view, uint32_t rank, int gpu);
  void KeepSum(const View& view, std::unique_ptr<Collective> group) HDPS_EXCLUDES(mutex_);
  void LeaveSum() HDPS_EXCLUDES(mutex_);

  // ---- Groups of all workers too, one for each lane that may wait for the others at a time.

  // False also of a view of one worker, which needs none.
  bool LanesAreOf(const View& view) const;
  // Requires: nobody uses those before.
  Status FormLanes(const View& view, uint32_t rank, int gpu) HDPS_EXCLUDES(mutex_);
  std::vector<Collective*> lanes() const;
  void LeaveLanes() HDPS_EXCLUDES(mutex_);

  // Whoever fails in a call may have missed another rank.
  bool any() const { return sum_ != nullptr || !lanes_.empty(); }
  // Those that are here are not what the next steps need, though their workers are the same.
  void Outdate();
  // Of every sum() so far, and of the lanes.
  CollectiveCounts counts() const;

  // ---- Any thread.

  // Ends every wait for the other ranks, for good.
  void Abort() HDPS_EXCLUDES(mutex_);
  // The same until the job goes on from a checkpoint. `restarts`: View::restarts from now on.
  void Interrupt(uint32_t restarts) HDPS_EXCLUDES(mutex_);

 private:
  CollectiveOptions OptionsOf(const View& view, uint32_t rank, int gpu) const;
  void AbortAll() HDPS_REQUIRES(mutex_);
  // What was kept of the view's groups may have come too late to be ended.
  void AbortIfLate(const View& view) HDPS_REQUIRES(mutex_);

  const Job& job_;
  const std::string host_;
  RendezvousStore& store_;
  ActivityBoard& board_;

  // Changed under the mutex, by the trainer's thread alone.
  std::unique_ptr<Collective> sum_;
  std::vector<std::unique_ptr<Collective>> lanes_;
  // The trainer's thread only.
  std::vector<PeerId> sum_members_, lane_members_;  // Empty: outdated.
  CollectiveCounts left_counts_;                    // Of each sum_ that is no more.

  Mutex mutex_;
  bool aborted_ HDPS_GUARDED_BY(mutex_) = false;
  uint32_t restarts_ HDPS_GUARDED_BY(mutex_) = 0;  // The newest that was told.
};

}  // namespace hdps
