// Carries out one training step: pull, compute, reduce, push, advance.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "common/base/status.h"
#include "common/platform/executor.h"
#include "common/platform/monotonic_clock.h"
#include "common/protocol/tallies.h"
#include "worker/cache/device_cache.h"
#include "worker/dense/dense_at_servers.h"
#include "worker/dense/dense_reduction.h"
#include "worker/exchange/node_channel.h"
#include "worker/exchange/push_acks.h"
#include "worker/exchange/push_plan.h"
#include "worker/model/model.h"
#include "worker/step/stage.h"
#include "worker/step/step_compute.h"
#include "worker/step/step_window.h"

namespace hdps {

class SpanRecorder;

struct StepOutcome {
  uint64_t examples = 0;  // Examples of this worker.
  double loss_sum = 0;
  // The run stops after this step. All workers agree under allreduce, or if layers exchange values.
  bool pause = false;
};

// Parameters of the step to run.
struct StepTask {
  Clock clock = 0;
  Clock until = 0;     // Clock at which the command ends; rows of later steps are not requested.
  bool pause = false;  // This worker was told to pause.
  double rate = 1;     // Factor of all learning rates.
  uint32_t epoch = 0;
  Clock steps_before = 0;  // As Command::steps_before.
  // Of the round, with the labels and bad rows of this step, without its examples and their loss.
  RoundCounts counts = {};
};

// Runs the first step of a window. Belongs to the trainer's thread.
//
// Invariant: a clock is announced to the servers only after all of them have acknowledged every
// push of the steps before it. The pull of a step is sent after the push of the step before, and
// its rows include that push; prefetches follow immediately, so that no link is idle for want of a
// request. At most pushes_in_flight_max pushes wait for their acknowledgements. Where all take up
// their steps when a worker is lost, nobody has the dense sum of a step before the servers have
// every push of it. A step that has failed may be run again after Settle().
class StepRunner {
 public:
  // `rank`: the rank of a cut model that `job` and `model` describe; null: the whole job.
  StepRunner(const Job& job, Model& model, NodeChannel& channel, MonotonicClock& clock,
             Executor& executor, RankModel* rank = nullptr);
  ~StepRunner() { WatchDevice(false); }

  void set_group(const DenseGroup& group);
  // Returns whether each step is announced with the squares of its gradients: train.clip_norm in
  // sync mode.
  bool clips_all() const { return clips_all_; }
  // Sets the groups in which layers exchange values: see LaneExchange.
  void set_lane_groups(std::span<Collective* const> groups) { compute_.set_groups(groups); }
  void set_recorder(SpanRecorder* recorder) {  // May be null.
    recorder_ = recorder;
    compute_.set_recorder(recorder);
  }
  // A worker that replays a run asks for all rows of the steps `*whole` at once, as the run did,
  // and for those of others ahead, at the same point of each step. Null: it does not replay. Must
  // outlive the runner.
  void set_replay(const std::set<Clock>* whole) { replayed_whole_ = whole; }
  void set_scores(ProgressiveScores* scores) { compute_.set_scores(scores); }  // May be null.
  void set_cache(DeviceCache* cache) {  // Null: no rows are cached.
    cache_ = cache;
    compute_.set_cache(cache);
  }

  // Runs the first step of the window, which stays in it, and requests the rows of the next.
  // kCorruption: the loss is not finite, and nothing of this step has been pushed.
  Result<StepOutcome> Run(StepWindow& window, const StepTask& task);
  // Waits until the servers have acknowledged every push.
  Status Settle();

  StepTimes& times() { return times_; }

 private:
  // Requests the rows of step `i` when its turn begins, after the push of the step before.
  void RequestRows(StepWindow& window, size_t i, Clock clock);
  // Prefetches the rows of the steps after at(turn), whose own rows have been requested.
  // Is true for a step for whose rows a replayed run did not ask ahead.
  bool AsksWhole(Clock clock) const {
    return replayed_whole_ != nullptr && replayed_whole_->contains(clock);
  }
  Status PrefetchSteps(StepWindow& window, size_t turn, const StepTask& task);
  // Gives the step's key list a new number, and splits its keys again if the set of cached rows has
  // changed.
  WindowStep& NewList(StepWindow& window, size_t i);
  Status TakeRows(WindowStep& step);
  // Waits for the rows of the step's key lists before `end`, as far as they have not been taken.
  Status TakeLists(WindowStep& step, size_t end);
  Status Compute(StepWindow& window, const StepTask& task, StepOutcome* outcome);
  Status ReduceDense(const StepTask& task, StepOutcome* outcome);
  UpdateTerms TermsOf(const StepTask& task) const;  // The result lacks the norm's factor.
  // Updates the rows that are cached at this worker.
  Status UpdateHotRows(const PreparedStep& step, const StepTask& task, StepOutcome* outcome);
  // Chooses the rows to cache from step `clock` on, if a new choice is due.
  Status RefreshCache(StepWindow& window, Clock clock);
  // Sends the push of the first step and, unless `pause`, requests the rows of the next ones.
  Status PushAndRequest(StepWindow& window, const StepTask& task, bool pause);
  // Returns true if the push is sent while dense gradients are still being computed, because no
  // part of it depends on them.
  bool PushesEarly(const PreparedStep& step) const;
  // Sends the pushes of the step that have not been sent and, once all are acknowledged, the
  // announcement that the step is finished.
  void Push(const WindowStep& step, const StepTask& task);
  // Sends the pushes of the key lists from 1 to `end` that have not been sent: those of single
  // pieces.
  void PushPieces(const WindowStep& step, const StepTask& task, size_t end);
  void PushList(const WindowStep& step, const StepTask& task, size_t list,
                std::vector<ServerRequest> then);
  // Returns the counts of the round with this step.
  RoundCounts CountsWith(const PreparedStep& step, const StepTask& task) const;
  // Settles the norm of a pushed step (clip_norm in sync mode): gets the sums of squares from the
  // servers, adds the worker's own, makes the updates that are made here, and tells the servers to
  // make theirs.
  Status SettleNorm(const StepTask& task);
  // Waits for the announcement's replies; the servers have made the step's update then.
  Status AwaitAdvance();
  // Updates the dense tensors under allreduce with the summed gradients.
  Status ApplyDense(const UpdateTerms& terms, Clock clock);
  // Begins or ends the recording of what the model's device does; its end adds the spans.
  void WatchDevice(bool watch);
  void EndRecordedStep(const PreparedStep& step, Clock clock, int64_t begin_ns);
  // Gives the model the weights of these ranges, unless they lie in its own memory.
  void GiveToModel(const std::vector<FloatRun>& runs);
  // Lets the model write gradients straight into the push, unless they have to be changed before
  // they are sent.
  void BeginPush(const PreparedStep& step);
  // Returns the step's gradients of the tables in one of its key lists.
  std::vector<std::span<const float>> GradientsOf(const PreparedStep& step, size_t list);
  MakeBytes SectionMaker();

  const Job& job_;
  Model& model_;
  NodeChannel& channel_;
  MonotonicClock& clock_;
  Executor& executor_;
  StepCompute compute_;
  const int dense_table_;  // -1 if the job has none.
  // train.clip_norm is set: clips_all_ clips by the norm of a step's gradients of all workers (sync
  // mode), clips_own_ by that of this worker's.
  const bool clips_all_, clips_own_;
  const bool meets_again_;  // StepsTakenUp() is not 0.
  DenseAtServers dense_at_servers_;
  DenseReduction dense_sum_;
  CollectiveQueue* queue_ = nullptr;  // The queue of the dense group.
  DeviceCache* cache_ = nullptr;

  uint64_t next_sequence_ = 0;
  uint64_t next_list_ = 1;
  PushAcks acks_;
  std::optional<Ticket> advance_;  // Under clip_norm: the announcement of the last step.

  // The current step.
  std::optional<PushPlan> push_;  // Of its first key list, between its gradients and its push.
  size_t lists_taken_ = 0;        // Key lists whose rows are in place.
  size_t lists_pushed_ = 1;       // Key lists from 1 to here are pushed.
  // Time spent sending, and waiting for rows, while gradients are computed.
  int64_t sent_ns_ = 0, waited_ns_ = 0;

  StepTimes times_;
  SpanRecorder* recorder_ = nullptr;
  bool watches_device_ = false;
  const std::set<Clock>* replayed_whole_ = nullptr;

  std::span<float> dense_;            // [dense floats]: the model's own memory, or dense_outside_.
  std::vector<float> dense_outside_;  // Used if the model's weights lie on another device.
  std::span<float> pushed_dense_;     // Gradients for the servers, of the current step.
};

}  // namespace hdps
