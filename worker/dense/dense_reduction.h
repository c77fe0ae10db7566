// The dense gradients of one step on their way: from the parts of a worker to the sum over all
// workers, and to the update that every worker makes.
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

// Where the dense gradients go under allreduce: summed over the ranks, applied by each, or by those
// that share the optimizer.
struct DenseGroup {
  ShardGroups groups;                   // Without one of all: dense gradients go to the servers.
  DenseState* state = nullptr;          // Of shards->OwnKeys().
  const DenseShards* shards = nullptr;  // Null: nothing is split.
  CollectiveQueue* queue = nullptr;     // Of the group; null: it is called when all is computed.
  const RankGroups* sharing = nullptr;  // Of a cut model: who has which tensors.
};

// Belongs to the trainer's thread.
//
// Invariant: gradients are the same bits whatever the buckets and whether they leave early: a sum
// is taken element by element, over the parts in their order, then over the ranks in theirs. All
// ranks reduce the buckets in the order of the plan.
class DenseReduction {
 public:
  // `clock` and `executor` outlive it. `dense_table`: -1: the job has none.
  // `rank`: of a cut model, whose part it is.
  DenseReduction(const Job& job, Model& model, int dense_table, Executor& executor,
                 const RankModel* rank = nullptr);

  void set_group(const DenseGroup& group);
  bool in_group() const { return group_.groups.all != nullptr; }
  // Gradients and state are on the model's device.
  bool on_device() const { return group_.state != nullptr && group_.state->on_device(); }

  // What a step of this worker has, and what it says to the others.
  struct StepShape {
    StepWord word;
    size_t workers = 1;
    bool computed = true;  // Gradients are made: of examples here, or of a cut model.
  };
  void Begin(const StepShape& shape);
  // The gradient of the tensor stands. Its bucket leaves once all of it stands, unless `stay`.
  void TensorDone(uint32_t tensor, bool stay);
  // Of this worker, [dense floats]; in a group they are no more after Finish().
  DenseGradients gradients();

  // In a group: what has not left yet leaves; waits for the sums. What all ranks say together.
  Result<StepWord> Finish();

  // After Finish() of a step in which some rank had an example: the squares of the step's gradient
  // as the rule gets it, and the update.
  bool has_update() const { return scale_ != 0; }
  // Both ask the other ranks where the optimizer is split.
  Result<SquareSum> Squares();
  // [dense floats]: gets the weights, unless the state is on the device.
  Status Apply(const UpdateTerms& terms, Clock clock, std::span<float> weights);

 private:
  // The floats of a run; on the device where the gradients are.
  std::span<float> In(const FloatRun& run);
  void Scale(uint32_t tensor);
  // A group reads what is ready, on a stream of its own; the device's calls are this thread's.
  void Await();
  void SendFull();  // Buckets that are full, in the order of the plan.
  // The sum of one bucket over the ranks; one of them takes the words along.
  Status Reduce(Collective& group, size_t bucket);
  Status ReduceWords(Collective& group);
  Status ReduceHalves(Collective& group, const DenseBucket& bucket,
                      std::vector<ReducedValues> beside);
  std::vector<ReducedValues> Words();
  bool split() const { return group_.shards != nullptr && group_.shards->any(); }
  // What the state's rule gets: the gradients of all that this rank updates.
  std::span<float> OwnGradients();
  // What leaves every sum as it is.
  void FillNothing();

  const Job& job_;
  DenseOps& ops_;  // Of the model.
  const std::vector<DenseTensor>& tensors_;
  const int dense_table_;
  Executor& executor_;
  const std::vector<uint32_t> shared_by_;  // As PlanDense takes it.
  DensePlan plan_;                         // Of the group.
  DenseGroup group_;
  std::optional<DenseScatter> scatter_;  // Where the optimizer is split.

  // Of the step at hand.
  StepShape shape_;
  std::vector<size_t> missing_;        // [buckets]: tensors whose gradient does not stand.
  size_t sent_ = 0;                    // Buckets.
  CollectiveTicket last_;              // Of the bucket sent last.
  uint64_t examples_ = 0, pause_ = 0;  // Of this worker, then of all.
  float scale_ = 0;  // What the sum of the gradients is scaled with; 0: there is none.

  std::vector<float> gradients_;  // [dense floats], or
  DeviceArray device_gradients_;  // these, where the state of the group is on the device.
  // [floats of the keys of the state], where the optimizer is split.
  std::vector<float> own_gradients_, own_weights_;
  std::vector<uint16_t> halves_;  // Of the bucket at hand, where it travels in 16 bits.
};

}  // namespace hdps
