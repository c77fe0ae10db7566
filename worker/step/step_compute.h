// The gradients of one step from its rows: its parts one after the other, or all of them as lanes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "common/base/status.h"
#include "common/platform/monotonic_clock.h"
#include "worker/cache/device_cache.h"
#include "worker/collective/collective.h"
#include "worker/exchange/push_plan.h"
#include "worker/model/model.h"
#include "worker/parallel/rank_model.h"
#include "worker/step/lane_exchange.h"
#include "worker/step/step_window.h"

namespace hdps {

// What a step came to.
struct ComputedStep {
  double loss_sum = 0;  // Over the examples; of parallel.loss_sum as ParallelSpec says.
  bool pause = false;   // With layers that meet: some worker wishes to pause.
};

// What a step is computed with.
struct StepTerms {
  const PushPlan& push;            // Has places for gradients of rows, or has not.
  bool pause = false;              // This worker wishes to pause.
  DenseGradients dense_gradients;  // [dense floats]: get sums over the examples.
};

// Dense gradients of a part, in the memory where the step wants its own.
class PartGradients {
 public:
  explicit PartGradients(DenseOps& ops) : device_(&ops) {}
  // As many as those of the step; what they held may be lost.
  DenseGradients Like(const DenseGradients& step) {
    if (step.on_device) return {device_.Reserve(step.size), step.size};
    host_.resize(step.size);
    return std::span<float>(host_);
  }

 private:
  std::vector<float> host_;
  DeviceArray device_;
};

// Parts of a step are added in their order: the slices of a micro-batch, then the micro-batches.
//
// Invariant: where layers meet, every worker computes each step with as many lanes, of which some
// have no examples, so that none waits for another in vain.
class StepCompute {
 public:
  // All of them outlive it.
  StepCompute(const Job& job, Model& model, MonotonicClock& clock);

  void set_cache(DeviceCache* cache) { cache_ = cache; }  // Null: no rows are kept here.
  // The model is the one of a rank of a strategy; null: it is the job's whole model.
  void set_rank(RankModel* rank) { rank_ = rank; }
  // Whom layers meet: see LaneExchange. Again after each change of the groups.
  void set_groups(std::span<Collective* const> groups);
  void set_watch(StepWatch* watch);  // Null: nobody.

  // The gradient of a tensor stands, of all parts; `finite`: so far the loss is a number.
  using TensorDone = std::function<void(uint32_t tensor, bool finite)>;
  // Gradients of rows are row_gradients(); they and the dense ones are of no use when there is no
  // example. `rows_done` as in Model::Step, for a step of one part; it is not called when the loss
  // is not a number. kUnavailable, kCancelled: the other workers could not be met.
  Result<ComputedStep> Run(WindowStep& step, const StepTerms& terms,
                           const Model::RowsDone& rows_done, const TensorDone& tensor_done);

  // [tables][keys * dim], of the whole step; empty of those that the push has a place for.
  std::vector<std::vector<float>>& row_gradients() { return row_gradients_; }
  const std::vector<std::vector<float>>& row_gradients() const { return row_gradients_; }
  // [keys * dim] of a table that keeps rows, where those are: there a row's is the sum over all
  // parts. Null of a step without examples.
  const float* KeptGradients(const PreparedStep& step, TableId table) const;

 private:
  // The keys of one of several parts, by where their rows are kept on the model's device.
  struct KeptKeys {
    std::vector<uint32_t> slots;
    std::unique_ptr<SlabSlots> loaded;     // `slots`.
    std::unique_ptr<SlabSlots> positions;  // Among the keys of the step.
  };
  // Gradients of a table that keeps rows on the model's device, [keys of the step * dim]: negative
  // zero, to which all parts are added.
  struct KeptSum {
    explicit KeptSum(DenseOps& ops) : step(&ops), group(&ops) {}
    DeviceArray step;
    DeviceArray group;  // Over slices of a micro-batch.
  };
  // One part on its way; kept for its memory.
  struct PartMemory {
    explicit PartMemory(DenseOps& ops) : dense(ops) {}
    std::vector<std::vector<float>> rows;  // [tables], of the part
    std::vector<KeptKeys> kept;            // [groups of the cache], likewise
    std::vector<TableInput> inputs;        // [tables]
    StepResult result;
    PartGradients dense;  // Not used for the first part: its are those of the step.
  };

  PartMemory& MemoryOf(size_t lane);
  void FillInputs(WindowStep& step, size_t part, const PushPlan& push, PartMemory* memory);
  bool KeepsOnDevice() const { return cache_ != nullptr && !model_.ops().on_host(); }
  // Rows of tables that are kept on the model's device go straight into its inputs.
  void PointAtKeptRows(const PreparedStep& step, size_t part, PartMemory* memory);
  // Adds the gradients of one of several parts where such rows are.
  void AddKeptGradients(const StepParts& parts, size_t part, size_t lane);
  Status RunParts(WindowStep& step, const StepTerms& terms, const Model::RowsDone& rows_done,
                  const TensorDone& tensor_done);
  Status RunLanes(WindowStep& step, const StepTerms& terms, const Model::RowsDone& rows_done,
                  const TensorDone& tensor_done);
  // Which rows the layers of a cut model have in each lane.
  Status LayRows(const StepParts& parts, std::vector<StepLane>* lanes);
  StepLane LaneOf(const Batch& batch, bool first, const DenseGradients& of_step,
                  PartMemory* memory) const;
  // Adds one tensor of a part's dense gradients to those of the step.
  void AddTensor(const DenseTensor& tensor, const DenseGradients& part, const DenseGradients& sum);
  // One tensor's gradients of all lanes.
  void AddLanes(const StepParts& parts, const DenseTensor& tensor, const DenseGradients& of_step);
  // Takes loss and row gradients of a part, which was computed in a lane, behind those before it.
  void TakePart(const PreparedStep& step, size_t part, size_t lane, bool rows_taken);
  double LossOf(const PreparedStep& step, size_t part, double loss_sum) const;

  const Job& job_;
  Model& model_;
  MonotonicClock& clock_;
  DeviceCache* cache_ = nullptr;
  RankModel* rank_ = nullptr;
  Collective* group_ = nullptr;  // The first of those that layers meet in.
  StepWatch* watch_ = nullptr;
  std::unique_ptr<LaneExchange> exchange_;  // Null where no layer meets.
  uint64_t any_pause_ = 0;                  // Of the step at hand: on its way to the others.
  const Batch no_examples_;
  std::vector<std::unique_ptr<PartMemory>> memory_;  // [lanes]
  std::vector<std::vector<float>> row_gradients_;
  PartGradients group_dense_;                    // Over slices of a micro-batch.
  std::vector<StepParts::GroupSum> group_rows_;  // [tables], likewise.
  std::vector<std::unique_ptr<KeptSum>> kept_;   // [tables]; null where none are.
  ComputedStep computed_;                        // Of the step at hand.
};

}  // namespace hdps
