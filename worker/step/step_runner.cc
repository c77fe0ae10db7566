// Carries a step from its prepared keys to the announcement of its clock.
#include "worker/step/step_runner.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/planning/in_place.h"
#include "common/platform/failpoint.h"
#include "common/platform/memory_full.h"
#include "common/protocol/view.h"
#include "common/telemetry/span_recorder.h"
#include "worker/step/own_norm.h"

namespace hdps {
namespace {

int DenseTableOf(const Job& job) {
  const bool has = !job.tables.empty() && job.tables.back().dense;
  return has ? static_cast<int>(job.tables.size() - 1) : -1;
}

}  // namespace

StepRunner::StepRunner(const Job& job, Model& model, NodeChannel& channel, MonotonicClock& clock,
                       Executor& executor, RankModel* rank)
    : job_(job),
      model_(model),
      channel_(channel),
      clock_(clock),
      executor_(executor),
      compute_(job, model, clock),
      dense_table_(DenseTableOf(job)),
      clips_all_(job.train.clip_norm > 0 && job.train.mode == Mode::kSync),
      clips_own_(job.train.clip_norm > 0 && job.train.mode != Mode::kSync),
      meets_again_(StepsTakenUp(job) > 0),
      dense_at_servers_(job, model.tensors()),
      dense_sum_(job, model, dense_table_, executor, rank),
      acks_(channel) {
  compute_.set_rank(rank);
  if (meets_again_) dense_sum_.HoldLast();
  dense_ = model.DenseInPlace();
  if (dense_.size() < model.dense_floats()) {
    dense_outside_.resize(model.dense_floats());
    dense_ = dense_outside_;
    // A worker whose first steps have no examples computes before it has pulled any weights.
    if (model.has_exchange()) model.SetDense(dense_);
  }
}

void StepRunner::set_group(const DenseGroup& group) {
  dense_sum_.set_group(group);
  queue_ = group.queue;
}

Result<StepOutcome> StepRunner::Run(StepWindow& window, const StepTask& task) {
  const MemoryFor step_memory(
      "a worker's step (its part of train.batch_size over train.micro_batches, times "
      "embedding_dim and model.hidden)");
  const PreparedStep& step = *window.at(0).prepared;
  if (recorder_ != nullptr) {
    recorder_->BeginStep(task.clock);
    WatchDevice(recorder_->on());
  }
  const int64_t begin = clock_.NowNs();
  ActivityBoard& board = channel_.board();
  board.Enter("pull");
  StepOutcome outcome;
  outcome.examples = step.parts.num_examples();
  outcome.pause = task.pause;
  if (!window.at(0).rows->requested()) {
    HDPS_RETURN_IF_ERROR(RefreshCache(window, task.clock));
    RequestRows(window, 0, task.clock);
  }
  HDPS_RETURN_IF_ERROR(TakeRows(window.at(0)));
  board.Enter(ActivityBoard::kCompute);
  if (!task.pause) HDPS_RETURN_IF_ERROR(PrefetchSteps(window, 0, task));
  HDPS_FAILPOINT("worker.step.pulled");
  const int64_t pulled = clock_.NowNs();
  sent_ns_ = waited_ns_ = 0;
  HDPS_RETURN_IF_ERROR(Compute(window, task, &outcome));
  HDPS_FAILPOINT("worker.step.computed");
  bool sent = PushesEarly(step);
  if (meets_again_ && !sent) {
    const int64_t begin_push = clock_.NowNs();
    HDPS_RETURN_IF_ERROR(PushAndRequest(window, task, task.pause));
    sent_ns_ += clock_.NowNs() - begin_push;
    sent = true;
  }
  const int64_t computed = clock_.NowNs();
  if (dense_sum_.in_group()) board.Enter("reduce_dense");
  if (dense_sum_.in_group()) HDPS_RETURN_IF_ERROR(ReduceDense(task, &outcome));
  HDPS_FAILPOINT("worker.step.reduced");
  const int64_t reduced = clock_.NowNs();
  if (cache_ != nullptr) {
    board.Enter("keep");
    HDPS_RETURN_IF_ERROR(UpdateHotRows(step, task, &outcome));
  }
  board.Enter("push");
  const int64_t updated = clock_.NowNs();
  if (!sent) HDPS_RETURN_IF_ERROR(PushAndRequest(window, task, outcome.pause));
  HDPS_RETURN_IF_ERROR(acks_.Collect(job_.cluster.pushes_in_flight_max - 1));
  board.Enter("advance");
  times_.push_wait_ns += clock_.NowNs() - updated + sent_ns_;
  times_.keep_ns += updated - reduced;
  times_.pull_wait_ns += pulled - begin + waited_ns_;
  times_.pull_hidden_ns += window.at(0).rows->TakeHiddenNs();
  times_.compute_ns += computed - pulled - sent_ns_ - waited_ns_;
  times_.reduce_dense_ns += reduced - computed;
  times_.read_ns += step.read_ns;
  times_.dedup_ns += step.dedup_ns;
  times_.examples += outcome.examples;
  ++times_.steps;
  EndRecordedStep(step, task.clock, begin);
  HDPS_FAILPOINT("worker.step.ended");
  return outcome;
}

void StepRunner::WatchDevice(bool watch) {
  if (watch == std::exchange(watches_device_, watch)) return;
  if (watch) return model_.ops().WatchSpans(clock_);
  for (const DeviceSpan& span : model_.ops().TakeSpans()) {
    const char* const what = span.kind == DeviceSpan::Kind::kCopyUp     ? "copy up"
                             : span.kind == DeviceSpan::Kind::kCopyDown ? "copy down"
                                                                        : "compute";
    recorder_->Add(std::string("device, ") + what, what, span.begin_ns, span.end_ns);
  }
}

void StepRunner::EndRecordedStep(const PreparedStep& step, Clock clock, int64_t begin_ns) {
  if (recorder_ == nullptr || !recorder_->on()) return;
  model_.ops().EndSpan();
  recorder_->Add("read", "read", step.read_end_ns - step.read_ns, step.read_end_ns, {clock});
  recorder_->Add("dedup", "dedup", step.dedup_end_ns - step.dedup_ns, step.dedup_end_ns, {clock});
  recorder_->Add("step", "step", begin_ns, recorder_->NowNs(), {clock});
  if (!recorder_->Records(clock + 1)) WatchDevice(false);
}

Status StepRunner::PushAndRequest(StepWindow& window, const StepTask& task, bool pause) {
  const RecordedSpan span(recorder_, "step", "push, ask for the next rows");
  channel_.board().Enter("push");
  pushed_dense_ = dense_at_servers_.Pack(dense_sum_.host_gradients());
  if (clips_own_) {
    ClipOwnNorm(job_, window.at(0).prepared->parts.num_examples(), dense_at_servers_.keys(),
                {compute_.row_gradients(), pushed_dense_});
  }
  Push(window.at(0), task);
  if (clips_all_) HDPS_RETURN_IF_ERROR(SettleNorm(task));
  if (pause || task.clock + 1 >= task.until) return Status();
  HDPS_RETURN_IF_ERROR(RefreshCache(window, task.clock + 1));
  HDPS_RETURN_IF_ERROR(window.Fill(2, replayed_whole_ != nullptr ? 2 : 1));
  if (window.size() < 2) return Status();
  RequestRows(window, 1, task.clock + 1);
  return PrefetchSteps(window, 1, task);
}

bool StepRunner::PushesEarly(const PreparedStep& step) const {
  // Without sparse tables there is no push to send early, and buckets are reduced during backward.
  const bool has_rows = job_.tables.size() > 1 || dense_table_ < 0;
  if (!has_rows && queue_ != nullptr) return false;
  const size_t parts = step.parts.parts().size();
  const bool one_by_one = parts == 1 || (parts > 1 && !model_.has_exchange());
  return dense_at_servers_.empty() && cache_ == nullptr && !clips_all_ && !clips_own_ && one_by_one;
}

Status StepRunner::RefreshCache(StepWindow& window, Clock clock) {
  if (cache_ == nullptr || !cache_->RefreshDue()) return Status();
  window.CancelRequests();
  HDPS_RETURN_IF_ERROR(Settle());
  return cache_->Refresh(clock);
}

WindowStep& StepRunner::NewList(StepWindow& window, size_t i) {
  WindowStep& step = window.at(i);
  if (cache_ != nullptr && cache_->Stale(step.prepared->hot)) window.Split(i);
  step.list = next_list_;
  next_list_ += step.prepared->lists.size();
  return step;
}

void StepRunner::RequestRows(StepWindow& window, size_t i, Clock clock) {
  WindowStep& step = window.at(i).rows->has_prefetch() ? window.at(i) : NewList(window, i);
  // Cached rows are inserted among the rows that arrive, so those cannot stay in the reply.
  step.rows->RequestRows(
      *step.prepared,
      {.clock = clock, .pushed = clock, .list = step.list, .in_place = cache_ == nullptr});
}

Status StepRunner::PrefetchSteps(StepWindow& window, size_t turn, const StepTask& task) {
  const size_t lookahead = job_.train.lookahead;
  if (lookahead == 0) return Status();
  const size_t most = turn + 1 + lookahead;
  HDPS_RETURN_IF_ERROR(window.Fill(most, replayed_whole_ != nullptr ? most : 1));
  for (size_t i = turn + 1; i < window.size(); ++i) {
    const Clock clock = task.clock + static_cast<Clock>(i);
    if (clock >= task.until) break;
    if (window.at(i).rows->has_prefetch() || AsksWhole(clock)) continue;
    WindowStep& step = NewList(window, i);
    const Clock pushed = task.clock + static_cast<Clock>(turn);
    step.rows->PrefetchRows(*step.prepared, {.clock = clock, .pushed = pushed, .list = step.list});
  }
  return Status();
}

Status StepRunner::TakeLists(WindowStep& step, size_t end) {
  const bool has_examples = !step.prepared->parts.empty();
  std::optional<std::span<float>> dense;
  if (!dense_at_servers_.empty()) {
    dense = has_examples ? dense_at_servers_.PlaceIn(dense_) : std::span<float>();
  }
  for (; lists_taken_ < end; ++lists_taken_) {
    const RecordedSpan span(recorder_, "step", "wait for rows");
    const ActivityBoard::Waiting waiting(&channel_.board(), WaitReason::kMembers);
    // If a push was refused, its rows never come; so its acknowledgement is checked here too.
    while (!step.rows->ready(lists_taken_)) {
      channel_.WaitForAnything();
      HDPS_RETURN_IF_ERROR(acks_.Collect(job_.cluster.pushes_in_flight_max));
    }
    HDPS_RETURN_IF_ERROR(step.rows->Take(dense, lists_taken_));
  }
  return Status();
}

Status StepRunner::TakeRows(WindowStep& step) {
  lists_taken_ = 0;
  HDPS_RETURN_IF_ERROR(TakeLists(step, 1));
  if (cache_ != nullptr) {
    cache_->rows().Load(step.prepared->hot);
    if (model_.ops().on_host()) cache_->rows().Gather(step.rows->rows());
  }
  if (!step.prepared->parts.empty()) {
    dense_at_servers_.Unpack(dense_);
    GiveToModel(dense_at_servers_.runs());
  }
  return Status();
}

void StepRunner::GiveToModel(const std::vector<FloatRun>& runs) {
  if (dense_outside_.empty()) return;
  for (const FloatRun& run : runs) {
    model_.SetDenseAt(run.begin, dense_.subspan(run.begin, run.size));
  }
}

Status StepRunner::Compute(StepWindow& window, const StepTask& task, StepOutcome* outcome) {
  WindowStep& step = window.at(0);
  Status sent;
  const auto timed = [this](int64_t* ns, const auto& work) {
    const int64_t begin = clock_.NowNs();
    work();
    *ns += clock_.NowNs() - begin;
    channel_.board().Enter(ActivityBoard::kCompute);
  };
  Model::RowsDone rows_done;
  if (PushesEarly(*step.prepared)) {
    rows_done = [&] {
      // Other workers may want to pause too; then this request is in vain.
      timed(&sent_ns_, [&] { sent = PushAndRequest(window, task, task.pause); });
    };
  }
  const auto need_piece = [&](uint32_t piece) {
    Status taken;
    const size_t end = std::min<size_t>(piece + 2, step.prepared->lists.size());
    timed(&waited_ns_, [&] { taken = TakeLists(step, end); });
    return taken;
  };
  const auto piece_done = [&](uint32_t piece) {
    timed(&sent_ns_, [&] { PushPieces(step, task, piece + 2); });
  };
  BeginPush(*step.prepared);
  dense_sum_.Begin({.vote = {step.prepared->parts.num_examples(), outcome->pause},
                    .workers = channel_.view()->workers.size(),
                    .computed = model_.has_exchange() || !step.prepared->parts.empty()});
  // If the loss has diverged, no gradient is sent.
  const auto tensor_done = [this](uint32_t tensor, bool finite) {
    dense_sum_.TensorDone(tensor, /*stay=*/!finite);
  };
  HDPS_ASSIGN_OR_RETURN(
      const ComputedStep computed,
      compute_.Run(step, {*push_, outcome->pause, dense_sum_.gradients(), need_piece, piece_done},
                   rows_done, tensor_done));
  HDPS_RETURN_IF_ERROR(sent);
  // The lists of pieces without an example are empty.
  HDPS_RETURN_IF_ERROR(TakeLists(step, step.prepared->lists.size()));
  outcome->loss_sum = computed.loss_sum;
  outcome->pause = computed.pause;
  if (!std::isfinite(outcome->loss_sum)) {
    return Status(Code::kCorruption,
                  "the loss is not a number any more: training has diverged; try a smaller "
                  "learning_rate, or data.numeric_transform (transform of a column) where numbers "
                  "are large");
  }
  return Status();
}

Status StepRunner::ReduceDense(const StepTask& task, StepOutcome* outcome) {
  const RecordedSpan span(recorder_, "step", "reduce dense gradients");
  const int64_t begin = clock_.NowNs();
  if (meets_again_) HDPS_RETURN_IF_ERROR(acks_.Collect(0));
  HDPS_ASSIGN_OR_RETURN(const StepVote all, dense_sum_.Finish());
  if (queue_ != nullptr) {
    const int64_t waited = clock_.NowNs() - begin;
    times_.reduce_hidden_ns += std::max(queue_->TakeBusyNs() - waited, int64_t{0});
  }
  outcome->pause = all.pause;
  if (dense_sum_.has_update() && !clips_all_) {
    HDPS_RETURN_IF_ERROR(ApplyDense(TermsOf(task), task.clock));
  }
  dense_sum_.Finished(task.clock + 1);
  return Status();
}

Status StepRunner::ApplyDense(const UpdateTerms& terms, Clock clock) {
  HDPS_RETURN_IF_ERROR(dense_sum_.Apply(terms, clock, dense_));
  GiveToModel(dense_sum_.host_runs());
  return Status();
}

UpdateTerms StepRunner::TermsOf(const StepTask& task) const {
  return {.rate = task.rate,
          .steps_before = task.steps_before,
          .clip_value = static_cast<float>(job_.train.clip_value)};
}

Status StepRunner::UpdateHotRows(const PreparedStep& step, const StepTask& task,
                                 StepOutcome* outcome) {
  std::vector<const float*> gradients(job_.tables.size());
  for (const HotGroup& group : cache_->rows().groups()) {
    for (const TableId table : group.tables) {
      gradients[table.value] = compute_.KeptGradients(step, table);
    }
  }
  HotStep hot;
  hot.number = task.clock + 1;
  hot.terms = TermsOf(task);
  hot.mine = {outcome->examples, outcome->pause};
  hot.hot = step.hot;
  hot.gradients = gradients;
  HDPS_ASSIGN_OR_RETURN(const StepVote all, clips_all_ ? cache_->Sum(hot) : cache_->Apply(hot));
  outcome->pause = all.pause;
  return Status();
}

}  // namespace hdps
