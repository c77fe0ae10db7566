// Computes the gradients of one step from its rows: its parts one after another, or all of them at
// once as lanes.
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

class ProgressiveScores;

// Outcome of computing one step.
struct ComputedStep {
  double loss_sum = 0;  // Sum over the examples; under parallel.loss_sum see ParallelSpec.
  bool pause = false;   // If layers exchange values between workers: some worker wants to pause.
};

// Inputs of computing one step besides its rows.
struct StepTerms {
  const PushPlan& push;            // May have places to write row gradients to.
  bool pause = false;              // This worker wants to pause.
  DenseGradients dense_gradients;  // [dense floats]: receives the sums over the examples.
  // Is called before a piece of the step is computed, in order, and returns when the rows of its
  // keys are there. Lanes have the rows of all pieces before the first is computed.
  std::function<Status(uint32_t piece)> need_piece = {};
  // Is called when the row gradients of the keys that only this piece uses are complete, before
  // the gradients of its dense weights are, if others follow and the loss so far is finite. Not
  // called for lanes.
  std::function<void(uint32_t piece)> piece_done = {};
};

// Dense gradients of one part, in the same kind of memory as the step's.
class PartGradients {
 public:
  explicit PartGradients(DenseOps& ops) : device_(&ops) {}
  // Returns gradients of the size and memory kind of `step`; earlier contents may be lost.
  DenseGradients Like(const DenseGradients& step) {
    if (step.on_device) return {device_.Reserve(step.size), step.size};
    host_.resize(step.size);
    return std::span<float>(host_);
  }

 private:
  std::vector<float> host_;
  DeviceArray device_;
};

// Computes the parts of a step and adds them in order: the slices of a micro-batch first, then the
// micro-batches.
//
// Invariant: if layers exchange values between workers, every worker computes each step with the
// same number of lanes, some of them without examples, so that no lane waits for a peer that does
// not exist.
class StepCompute {
 public:
  // Requires: all arguments outlive it.
  StepCompute(const Job& job, Model& model, MonotonicClock& clock);

  // Null: no rows are cached at this worker.
  void set_cache(DeviceCache* cache) { cache_ = cache; }
  // Sets the rank whose part of a cut model this is; null: the model is the whole one.
  void set_rank(RankModel* rank) { rank_ = rank; }
  // Sets the groups in which layers exchange values: see LaneExchange. Must be called again after
  // each change of the groups.
  void set_groups(std::span<Collective* const> groups);
  void set_recorder(SpanRecorder* recorder);  // May be null.
  // Sets where the scores of each step's examples go; null: nowhere.
  void set_scores(ProgressiveScores* scores) { scores_ = scores; }

  // Is called when a tensor's gradient is complete over all parts. `finite`: the loss so far is a
  // finite number.
  using TensorDone = std::function<void(uint32_t tensor, bool finite)>;
  // Computes one step. The row gradients are in row_gradients(); they and the dense ones are
  // meaningless if the step has no examples. `rows_done`, which may be null, is called when the row
  // gradients of all parts are complete and the loss is finite, before the dense gradients of the
  // last part are. Requires: it is null for several lanes. kUnavailable, kCancelled: the other
  // workers could not be reached.
  Result<ComputedStep> Run(WindowStep& step, const StepTerms& terms,
                           const Model::RowsDone& rows_done, const TensorDone& tensor_done);

  // Sum of the losses of the present step, complete when its row gradients are.
  double loss_sum() const { return computed_.loss_sum; }
  // [tables][keys * dim], over the whole step; empty for tables whose gradients go straight into
  // the push.
  std::vector<std::vector<float>>& row_gradients() { return row_gradients_; }
  const std::vector<std::vector<float>>& row_gradients() const { return row_gradients_; }
  // Returns the gradients [keys * dim] of a table with cached rows, in the memory where those rows
  // lie; a row's gradient is the sum over all parts. Null for a step without examples.
  const float* KeptGradients(const PreparedStep& step, TableId table) const;

 private:
  // The keys of one of several parts, by where their cached rows lie on the model's device.
  struct KeptKeys {
    std::vector<uint32_t> slots;
    std::unique_ptr<SlabSlots> loaded;     // `slots`, copied to the device.
    std::unique_ptr<SlabSlots> positions;  // Positions among the keys of the step.
  };
  // Gradients of a table with rows cached on the model's device, [keys of the step * dim]. Starts
  // as negative zeros, to which all parts are added.
  struct KeptSum {
    explicit KeptSum(DenseOps& ops) : step(&ops), group(&ops) {}
    DeviceArray step;
    DeviceArray group;  // Sum over the slices of a micro-batch.
  };
  // Memory of one part's computation; kept for the next steps.
  struct PartMemory {
    explicit PartMemory(DenseOps& ops) : dense(ops) {}
    std::vector<std::vector<float>> rows;  // [tables], rows of the part.
    std::vector<KeptKeys> kept;            // [groups of the cache], keys of the part.
    std::vector<TableInput> inputs;        // [tables]
    StepResult result;
    PartGradients dense;  // Unused for the first part, which writes to those of the step.
  };

  PartMemory& MemoryOf(size_t lane);
  void FillInputs(WindowStep& step, size_t part, const PushPlan& push, PartMemory* memory);
  bool KeepsOnDevice() const { return cache_ != nullptr && !model_.ops().on_host(); }
  // Lets the model read rows that are cached on its device where they lie.
  void PointAtKeptRows(const PreparedStep& step, size_t part, PartMemory* memory);
  // Adds one part's gradients of rows that are cached on the model's device.
  void AddKeptGradients(const StepParts& parts, size_t part, size_t lane);
  Status RunParts(WindowStep& step, const StepTerms& terms, const Model::RowsDone& rows_done,
                  const TensorDone& tensor_done);
  Status RunLanes(WindowStep& step, const StepTerms& terms, const Model::RowsDone& rows_done,
                  const TensorDone& tensor_done);
  // Fills in the rows that the layers of a cut model have in each lane.
  Status SetLayerRows(const StepParts& parts, std::vector<StepLane>* lanes);
  StepLane LaneOf(const Batch& batch, bool first, const DenseGradients& of_step,
                  PartMemory* memory) const;
  // Adds one tensor of a part's dense gradients to those of the step.
  void AddTensor(const DenseTensor& tensor, const DenseGradients& part, const DenseGradients& sum);
  // Adds one tensor's gradients of all lanes.
  void AddLanes(const StepParts& parts, const DenseTensor& tensor, const DenseGradients& of_step);
  // Adds the loss and the row gradients of a part, which was computed in `lane`, to those of the
  // parts before it.
  void TakePart(const PreparedStep& step, size_t part, size_t lane);
  double LossOf(const PreparedStep& step, size_t part, double loss_sum) const;
  // Keeps the scores of a part, which was computed in `lane`, if they are wanted.
  void KeepScores(const Batch& batch, size_t lane);

  const Job& job_;
  Model& model_;
  MonotonicClock& clock_;
  DeviceCache* cache_ = nullptr;
  RankModel* rank_ = nullptr;
  Collective* group_ = nullptr;  // The first of the groups in which layers exchange values.
  SpanRecorder* recorder_ = nullptr;
  ProgressiveScores* scores_ = nullptr;
  std::unique_ptr<LaneExchange> exchange_;  // Null if no layer exchanges values.
  uint64_t any_pause_ = 0;  // Of the current step: whether any worker wants to pause.
  const Batch no_examples_;
  std::vector<std::unique_ptr<PartMemory>> memory_;  // [lanes]
  std::vector<std::vector<float>> row_gradients_;
  PartGradients group_dense_;                    // Sum over the slices of a micro-batch.
  std::vector<StepParts::GroupSum> group_rows_;  // [tables]: sum over the slices of a micro-batch.
  std::vector<std::unique_ptr<KeptSum>> kept_;   // [tables]; null if no rows are cached.
  ComputedStep computed_;                        // Outcome of the current step.
};

}  // namespace hdps
