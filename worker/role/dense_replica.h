// The dense parameters that a worker keeps and updates itself under allreduce.
#pragma once

#include <cstdint>
#include <memory>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/platform/executor.h"
#include "common/platform/monotonic_clock.h"
#include "worker/collective/collective.h"
#include "worker/collective/collective_queue.h"
#include "worker/dense/dense_reduction.h"
#include "worker/dense/dense_shards.h"
#include "worker/dense/dense_state.h"
#include "worker/parallel/rank_groups.h"
#include "worker/role/dense_rows.h"
#include "worker/role/trained_part.h"

namespace hdps {

struct Job;

// Invariant: where it is loaded, the state is what the servers had at the clock of Load() with
// every update since, and all workers that share a tensor have the same bits of it.
//
// Belongs to the trainer's thread.
class DenseReplica {
 public:
  // All of them outlive it.
  DenseReplica(const Job& job, const DenseRows& rows, const TrainedPart& part, Executor& executor,
               MonotonicClock& time);

  // Whether the job's dense tensors are kept at the workers; if not, nothing below is called.
  bool used() const;
  bool loaded() const { return state_ != nullptr; }
  uint64_t state_bytes() const { return loaded() ? state_->state_bytes() : 0; }

  // All ranks of `group` at once: they compare what they are to do, and those who share tensors
  // form groups. It is of all workers of `place` and outlives LeaveGroup().
  Status JoinGroup(Collective& group, WorkerPlace place);
  void LeaveGroup();
  // What a step reduces through. Requires: loaded(), joined.
  DenseGroup InGroup(Collective& group);

  // Reads the state and the weights from the servers; nothing where it is loaded.
  Status Load(WorkerPlace place, Clock clock);
  // Writes to the servers what this rank stores, so that all ranks together store all.
  Status Store(WorkerPlace place, Clock clock);
  // The same where a strategy cuts layers, which takes all ranks of `group` at once.
  Status StoreSlices(Collective& group, Clock clock);

  // The rows at the servers are not those of this state any more.
  void Forget() { state_.reset(); }
  // The part is about to change.
  void Outdate();

 private:
  const DenseShards& ShardsAt(WorkerPlace place);
  std::unique_ptr<DenseState> NewState(const DenseShards& shards) const;
  Status CompareBuckets(const DensePlan& plan, Collective& group) const;

  const Job& job_;
  const DenseRows& rows_;
  const TrainedPart& part_;
  Executor& executor_;
  MonotonicClock& time_;

  std::unique_ptr<DenseState> state_;    // Null: not loaded.
  std::unique_ptr<DenseShards> shards_;  // Who updates which tensors.
  // Of the group that was joined, and gone before it is.
  std::unique_ptr<RankGroups> rank_groups_;        // Of the part; null: all share every tensor.
  std::unique_ptr<Collective> places_, replicas_;  // Null: all of the group; this worker alone.
  std::unique_ptr<CollectiveQueue> queue_;         // Null: gradients travel in one call, or none.
};

}  // namespace hdps
