// Keeps the dense parameters that a worker updates itself under allreduce.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

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

// Invariant: once loaded, the state is that of the servers at the clock of Load() plus every update
// since, and all workers that share a tensor hold the same bits of it.
//
// Belongs to the trainer's thread.
class DenseReplica {
 public:
  // Requires: all arguments outlive it.
  DenseReplica(const Job& job, const DenseRows& rows, const TrainedPart& part, Executor& executor,
               MonotonicClock& time);

  // Is true if workers keep some of the job's dense tensors; otherwise nothing below may be called.
  bool used() const;
  bool loaded() const { return host_ != nullptr || device_ != nullptr; }
  // Number of steps whose updates the state has. Requires: loaded().
  Clock clock() const { return clock_; }
  // Bytes of optimizer state in the host's memory, and on the model's device.
  uint64_t host_state_bytes() const { return host_ == nullptr ? 0 : host_->state_bytes(); }
  uint64_t device_state_bytes() const { return device_ == nullptr ? 0 : device_->state_bytes(); }

  // Compares the plans of all ranks, forms groups of ranks that share tensors, and brings every
  // rank to the newest state of all. All ranks of `group` must call it at once. `group` has all
  // workers of `place` and must outlive LeaveGroup().
  Status JoinGroup(Collective& group, WorkerPlace place);
  void LeaveGroup();
  // Returns the parameters of a step's reduction. Requires: loaded(), and the group is joined.
  DenseGroup InGroup(Collective& group);

  // Reads the state and the weights from the servers, unless loaded().
  Status Load(WorkerPlace place, Clock clock);
  // Writes this rank's share of the state to the servers; all ranks together write all of it.
  Status Store(WorkerPlace place, Clock clock);
  // The same for a model that a strategy cuts. All ranks of `group` must call it at once.
  Status StoreSlices(Collective& group, Clock clock);

  // Drops the state, because the rows at the servers have changed.
  void Forget() {
    host_.reset();
    device_.reset();
  }
  // Drops everything that depends on the trained part, which is about to change.
  void Outdate();

 private:
  const DenseShards& ShardsAt(WorkerPlace place);
  // Returns the tensors that the model's device updates, ascending.
  std::vector<uint32_t> OnDevice() const;
  // Makes the states of what this worker updates; null where it is nothing.
  std::unique_ptr<HostDenseState> NewHostState(const DenseShards& shards) const;
  std::unique_ptr<DeviceDenseState> NewDeviceState() const;
  // Returns their rows that this rank stores, and the keys of these.
  std::vector<float> StoredRows(const DenseShards& shards, std::vector<Key>* keys);
  Status CompareBuckets(const DensePlan& plan, Collective& group) const;
  // Brings every rank to the newest dense state of all: the first rank that has it sends it, if
  // some have none or that of a step before.
  Status MeetAtNewest(Collective& group, const DenseShards& shards);
  // Gives the model the weights among the state's rows [keys * row_floats].
  void GiveWeights(const DenseState& state, std::span<const float> rows);

  const Job& job_;
  const DenseRows& rows_;
  const TrainedPart& part_;
  Executor& executor_;
  MonotonicClock& time_;

  // The state of the tensors updated here, by where that is. Both null: nothing is loaded.
  std::unique_ptr<HostDenseState> host_;
  std::unique_ptr<DeviceDenseState> device_;
  Clock clock_ = 0;                      // Of the states.
  std::unique_ptr<DenseShards> shards_;  // Assigns tensors to the ranks that update them.
  // The next four are made for the group that was joined, and destroyed before it is.
  std::unique_ptr<RankGroups> rank_groups_;  // Null: all workers share every tensor.
  // Null: places are the whole group; this worker has no replicas.
  std::unique_ptr<Collective> places_, replicas_;
  std::unique_ptr<CollectiveQueue> queue_;  // Null: gradients travel in one call, or not at all.
};

}  // namespace hdps
