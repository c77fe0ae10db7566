// Reduces the dense gradients of one step: from the parts of a worker to the sum over all workers,
// and to the update that every worker makes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/base/status.h"
#include "common/platform/executor.h"
#include "worker/cache/hot_sum.h"
#include "worker/collective/collective_queue.h"
#include "worker/dense/dense_plan.h"
#include "worker/dense/dense_scatter.h"
#include "worker/dense/dense_shards.h"
#include "worker/dense/dense_state.h"
#include "worker/model/model.h"
#include "worker/parallel/rank_groups.h"
#include "worker/parallel/rank_model.h"

namespace hdps {

struct Job;

// Parameters of the reduction under allreduce: gradients are summed over the ranks and applied by
// each rank, or by those that share the optimizer.
struct DenseGroup {
  ShardGroups groups;                   // Without `all`, dense gradients go to the servers.
  HostDenseState* state = nullptr;      // State of the keys in shards->OwnKeys(); null: has none.
  const DenseShards* shards = nullptr;  // Null: nothing is split.
  // Queue of the group; null: collectives run after all gradients are computed.
  CollectiveQueue* queue = nullptr;
  const RankGroups* sharing = nullptr;  // In a cut model: which ranks hold which tensors.
  DeviceDenseState* device = nullptr;  // State of the tensors on the model's device; null: of none.
  Clock* clock = nullptr;              // Set to the number of steps whose updates the states have.
};

// Reduces the gradients of one step after another. Belongs to the trainer's thread.
//
// Invariant: the sums have the same bits whatever the buckets, and whether or not they are sent
// early: each element is added over the parts in order, then over the ranks in order. All ranks
// reduce the buckets in the order of the plan.
class DenseReduction {
 public:
  // Requires: the arguments outlive it. `dense_table`: -1 if the job has none. `rank`: the rank of
  // a cut model; null: the whole model.
  DenseReduction(const Job& job, Model& model, int dense_table, Executor& executor,
                 const RankModel* rank = nullptr);

  void set_group(const DenseGroup& group);
  bool in_group() const { return group_.groups.all != nullptr; }
  // Is true if the model's device updates tensors; then the model leaves its gradients there.
  bool on_device() const { return group_.device != nullptr; }
  // Sends the last bucket of each step in Finish(), not when it is complete: so no rank has the sum
  // of a step before every rank has called Finish().
  void HoldLast() { holds_last_ = true; }

  // Contents of this worker's step, and its vote.
  struct StepShape {
    StepVote vote;
    size_t workers = 1;
    bool computed = true;  // Gradients are computed: there are examples here, or the model is cut.
  };
  void Begin(const StepShape& shape);
  // Marks a tensor's gradient as complete. Its bucket is sent once all its tensors are complete,
  // unless `stay`.
  void TensorDone(uint32_t tensor, bool stay);
  // Returns where the model writes this worker's gradients [dense floats]; in a group they are
  // overwritten by Finish().
  DenseGradients gradients();
  // Returns the same in the host's memory, of the tensors that are complete and that no device
  // updates.
  std::span<float> host_gradients() { return gradients_; }
  // Where the tensors that the host updates lie in the flat array.
  const std::vector<FloatRun>& host_runs() const { return host_runs_; }

  // In a group: sends the remaining buckets, waits for the sums, and returns the vote of all ranks.
  Result<StepVote> Finish();

  // Is true after Finish() of a step in which any rank had an example; then there is a gradient to
  // apply.
  bool has_update() const { return scale_ != 0; }
  // Sum of squares of the step's gradient as the update rule receives it. Squares() and Apply()
  // call other ranks if the optimizer is split.
  Result<SquareSum> Squares();
  // Notes that the updates of the steps before `clock` are made.
  void Finished(Clock clock) {
    if (group_.clock != nullptr) *group_.clock = clock;
  }
  // Updates the state, and writes the weights of host_runs() to `weights` [dense floats].
  Status Apply(const UpdateTerms& terms, Clock clock, std::span<float> weights);

 private:
  // Is true if the workers reduce the gradient of the tensor and make its update.
  bool reduced(uint32_t tensor) const { return in_group() && !at_servers_[tensor]; }
  bool on_device(uint32_t tensor) const { return on_device() && group_.device->holds(tensor); }
  // Returns the floats of a range of tensors with one home: on the device, or in host memory.
  std::span<float> In(const FloatRun& run, bool device);
  std::span<float> GradientOf(uint32_t tensor) {
    return In(RunOf(tensors_[tensor]), on_device(tensor));
  }
  void Scale(uint32_t tensor);
  // Waits for the device, because a group reads the gradients on a stream of its own; only this
  // thread calls the device.
  void Await();
  void SendFull();  // Sends the complete buckets, in the order of the plan.
  // Sums one bucket over the ranks; one of the buckets carries the votes.
  Status Reduce(Collective& group, size_t bucket);
  // The same without a loss scale.
  Status ReduceUnscaled(Collective& group, size_t bucket);
  // Returns the exponent of the scale of each tensor of the bucket, on which the ranks of `group`
  // agree: a tensor's depends on its values alone, so buckets change no bit.
  Result<std::vector<int>> AgreeOnScales(Collective& group, const DenseBucket& bucket);
  // Multiplies this rank's gradients of the bucket's tensors by powers of two: `of_own` those that
  // it updates under a split optimizer.
  void ScaleBucket(const DenseBucket& bucket, std::span<const int> exponents, int sign,
                   bool of_own);
  Collective& GroupOf(Collective& all, const DenseBucket& bucket) const;
  Status ReduceVotes(Collective& group);
  Status ReduceHalves(Collective& group, const DenseBucket& bucket,
                      std::vector<ReducedValues> beside);
  std::vector<ReducedValues> Votes();
  bool split() const { return group_.shards != nullptr && group_.shards->any(); }
  // Is true if the keys of the state are those of all tensors, in order.
  bool all_here() const { return group_.shards == nullptr || group_.shards->all_here(); }
  // Returns the gradients of everything that this rank updates.
  std::span<float> OwnGradients();
  // Fills the gradients with negative zeros, which leave every sum as it is.
  void FillNegativeZeros();

  const Job& job_;
  DenseOps& ops_;  // Operations of the model's device.
  const std::vector<DenseTensor>& tensors_;
  const int dense_table_;
  Executor& executor_;
  const std::vector<uint32_t> shared_by_;  // Parameter of PlanDense.
  const std::vector<bool> at_servers_;     // [tensors]
  DensePlan plan_;                         // Plan of the group.
  DenseGroup group_;
  std::optional<DenseScatter> scatter_;  // Set if the optimizer is split.
  std::vector<FloatRun> host_runs_;

  // The current step.
  StepShape shape_;
  std::vector<size_t> missing_;  // [buckets]: number of tensors whose gradient is not complete.
  size_t sent_ = 0;              // Number of buckets sent.
  bool holds_last_ = false, finishes_ = false;
  CollectiveTicket last_;              // Ticket of the last bucket sent.
  uint64_t examples_ = 0, pause_ = 0;  // Of this worker; after Finish() of all.
  float scale_ = 0;                    // Factor of the summed gradients; 0: there are none.

  std::vector<float> gradients_;  // [dense floats]: of the tensors that no device updates.
  DeviceArray device_gradients_;  // [dense floats], if a device updates tensors.
  // [floats of the state's keys], unless all_here().
  std::vector<float> own_gradients_, own_weights_;
  std::vector<uint16_t> halves_;  // The current bucket, if it travels in 16 bits.
};

}  // namespace hdps
