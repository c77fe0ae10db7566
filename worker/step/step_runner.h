// Carries out one step: pull, compute, reduce, push, advance.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "common/base/status.h"
#include "common/platform/executor.h"
#include "common/platform/monotonic_clock.h"
#include "worker/cache/device_cache.h"
#include "worker/dense/dense_reduction.h"
#include "worker/exchange/node_channel.h"
#include "worker/exchange/push_plan.h"
#include "worker/model/model.h"
#include "worker/step/stage.h"
#include "worker/step/step_compute.h"
#include "worker/step/step_trace.h"
#include "worker/step/step_window.h"

namespace hdps {

struct StepOutcome {
  uint64_t examples = 0;  // Of this worker.
  double loss_sum = 0;
  bool pause =
      false;  // Stop after this step; under allreduce, or where layers meet, all agree on it.
};

// What to do with the first step of a window.
struct StepTask {
  Clock clock = 0;
  Clock until = 0;     // Where the command ends: the rows of that step are not asked for yet.
  bool pause = false;  // This worker was told to pause.
  double rate = 1;     // What all learning rates are multiplied with.
  uint32_t epoch = 0;
};

// Belongs to the trainer's thread.
//
// Invariant: a clock is announced to the servers only after every push of the steps before it has
// been acknowledged by all of them. The pull of a step is sent behind the push of the one before,
// and its rows hold that push; what is asked for ahead goes right behind it, so that no link stands
// still for want of a request. At most pushes_in_flight_max pushes wait for their answers.
class StepRunner {
 public:
  // `rank`: `job` and `model` are its; null: the whole job.
  StepRunner(const Job& job, Model& model, NodeChannel& channel, MonotonicClock& clock,
             Executor& executor, RankModel* rank = nullptr);
  ~StepRunner() { TellOfDevice(); }

  void set_group(const DenseGroup& group);
  // Whom layers meet: see LaneExchange.
  void set_meeting(std::span<Collective* const> groups) { compute_.set_groups(groups); }
  void set_trace(StepTrace* trace) {  // Null: nobody looks.
    trace_ = trace;
    compute_.set_watch(trace);
    if (trace != nullptr && trace->watches()) model_.ops().WatchSpans(clock_);
  }
  void set_cache(DeviceCache* cache) {  // Null: no rows are kept here.
    cache_ = cache;
    compute_.set_cache(cache);
  }

  // Makes the first step of the window, which stays in it, and asks for the rows of the next.
  // kCorruption when the loss is not a number: nothing of this step has been pushed then.
  Result<StepOutcome> Run(StepWindow& window, const StepTask& task);
  // Waits until the servers have acknowledged every push.
  Status Settle();

  StepTimes& times() { return times_; }

 private:
  // The rows of a step at its turn, which the push of the step before has begun.
  void AskRows(StepWindow& window, size_t i, Clock clock);
  // Those of the steps behind at(turn), whose own have been asked for at its turn.
  Status AskAhead(StepWindow& window, size_t turn, const StepTask& task);
  // Its key list gets a number, and its keys are those that are not kept here now.
  WindowStep& NewList(StepWindow& window, size_t i);
  Status TakeRows(WindowStep& step);
  Status Compute(StepWindow& window, const StepTask& task, StepOutcome* outcome);
  Status ReduceDense(const StepTask& task, StepOutcome* outcome);
  UpdateTerms TermsOf(const StepTask& task) const;  // But for the norm.
  // The update of rows that are kept here.
  Status UpdateHotRows(const PreparedStep& step, const StepTask& task, StepOutcome* outcome);
  // Chooses the rows to keep from step `clock` on, where that is due.
  Status RefreshCache(StepWindow& window, Clock clock);
  // Sends the push of the first step, and for the rows of those behind it unless `pause`.
  Status PushAndAsk(StepWindow& window, const StepTask& task, bool pause);
  // Whether that is done while dense gradients are still being computed: no part of the push waits
  // for them.
  bool PushesEarly(const PreparedStep& step) const;
  // Sends the push of step `clock`, and behind its acknowledgements the word that it is finished.
  void Push(const WindowStep& step, const StepTask& task);
  // Under clip_norm in sync mode: asks the servers for the squares of the step that was pushed,
  // makes the updates that are made here with those of all, and tells the servers to make theirs.
  Status SettleNorm(const StepTask& task);
  Status AwaitAdvance();  // Its acknowledgements: then the servers have made the step's update.
  // The update of dense tensors under allreduce, of the sum of the gradients.
  Status ApplyDense(const UpdateTerms& terms, Clock clock);
  // Looks at the acknowledgements that have come; waits while more than `left` are missing.
  Status CollectAcks(size_t left);
  void EndTracedStep();
  // The trace gets the spans of the model's device.
  void TellOfDevice();
  bool dense_at_servers() const { return !dense_sum_.in_group() && !dense_.empty(); }
  // Lets the model write gradients where they are sent from, as far as they need not be moved then.
  void BeginPush(const PreparedStep& step);
  // The gradients of the step for the tables of its split.
  std::vector<std::span<const float>> GradientsOfSplit(const PreparedStep& step);

  const Job& job_;
  Model& model_;
  NodeChannel& channel_;
  MonotonicClock& clock_;
  Executor& executor_;
  StepCompute compute_;
  const int dense_table_;  // -1: the job has none.
  // train.clip_norm is set; of all gradients of a step in sync mode, else of each worker's.
  const bool clips_all_, clips_own_;
  std::vector<Key> dense_keys_;  // Where the latter.
  DenseReduction dense_sum_;
  CollectiveQueue* queue_ = nullptr;  // Of its group.
  DeviceCache* cache_ = nullptr;

  uint64_t next_sequence_ = 0;
  uint64_t next_list_ = 1;
  std::deque<Ticket> pushes_;      // On their way, oldest first.
  std::optional<Ticket> advance_;  // Under clip_norm: the word that the last step is finished.
  std::optional<PushPlan> push_;   // Of the step at hand, from its gradients to its push.
  int64_t sent_ns_ = 0;            // Of it, what sending cost inside of computing.
  StepTimes times_;
  StepTrace* trace_ = nullptr;

  std::span<float> dense_;            // [dense floats]: the model's own, or
  std::vector<float> dense_outside_;  // these, where the model lies on another device.
};

}  // namespace hdps
