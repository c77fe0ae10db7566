// The phases of a job.
#include "scheduler/job_coordinator.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/base/exit_status.h"
#include "common/platform/failpoint.h"
#include "scheduler/phase_failpoints.h"
#include "scheduler/report/evaluation.h"
#include "scheduler/report/wait_notices.h"

namespace hdps {

JobCoordinator::JobCoordinator(std::shared_ptr<const Job> job, std::string out, const Parts& parts)
    : job_(std::move(job)),
      out_(std::move(out)),
      parts_(parts),
      eval_sets_(EvalSetsOf(job_->data)),
      watches_(*job_, Watched()),
      labels_(*job_) {}

void JobCoordinator::Begin(std::optional<FoundCheckpoint> start, TimeMs now) {
  began_ = now;
  start_ = std::move(start);
  Enter(start_ ? Phase::kLoadServers : Phase::kInitDense, now);
}

void JobCoordinator::Enter(Phase phase, TimeMs now) {
  PassFailpointOf(phase);
  phase_ = phase;
  phase_began_ = now;
  changed_ = true;
  orders_.clear();
  fault_.clear();
  answers_.clear();
  const std::vector<PeerId> first_worker = {parts_.members.workers().front()};
  // Those that have a part of the optimizer's state have that part alone.
  const bool split = job_->parallel.optimizer.enabled;
  const std::vector<PeerId> who_store = split ? parts_.members.workers() : first_worker;
  switch (phase) {
    case Phase::kSuspended:
    case Phase::kQuiet:
      return;
    case Phase::kMoveDense:
      return Send(who_store, MakeCommand(CommandKind::kStoreDense), now);
    case Phase::kMoveSave:
      return SendMovedShards(now);
    case Phase::kMoveServers:
      return SendLoadsOfMoved(now);
    case Phase::kMoveWorkers: {
      Command load = MakeCommand(CommandKind::kLoad);
      load.until = plan_->position().clock;
      load.epoch = plan_->position().epoch;
      load.epoch_start = plan_->position().epoch_start;
      load.keep = true;
      return Send(parts_.members.workers(), load, now);
    }
    case Phase::kLoadServers:
    case Phase::kLoadWorkers: {
      Command load = MakeCommand(CommandKind::kLoad);
      if (start_) {
        load.until = start_->manifest.clock;
        load.epoch = start_->manifest.epoch;
        load.epoch_start = start_->manifest.epoch_start;
        load.path = start_->folder;
      }
      const bool servers = phase == Phase::kLoadServers;
      return Send(servers ? parts_.members.holders() : parts_.members.workers(), load, now);
    }
    case Phase::kInitDense:
      return Send(first_worker, MakeCommand(CommandKind::kInitDense), now);
    case Phase::kTrain:
      round_.emplace(parts_.members.workers().size(), plan_->position().clock, plan_->until());
      if (stop_) round_->Pause();
      return SendTrainOrders(now);
    case Phase::kStoreDense:
      return Send(who_store, MakeCommand(CommandKind::kStoreDense), now);
    case Phase::kEvaluate:
      evaluation_ = std::make_unique<EvaluationSums>(*job_, parts_.files, out_);
      return Send(parts_.members.workers(), EvaluateCommand(), now);
    case Phase::kDigest:
      return Send(parts_.members.servers(), MakeCommand(CommandKind::kDigest), now);
    case Phase::kSave:
      return BeginSave(now);
    case Phase::kFinish:
      FillSummary(now);
      if (const Status written = WriteSummary(parts_.files, out_, summary_); !written.ok()) {
        return Fail(3, "the job is done, but its summary is not written: " + written.message());
      }
      HDPS_FAILPOINT("scheduler.summary.written");
      for (const PeerId peer : parts_.members.all()) parts_.members.Release(peer);
      return Send(parts_.members.all(), MakeCommand(CommandKind::kFinish), now);
    case Phase::kOver:
      return;
  }
}

void JobCoordinator::Send(const std::vector<PeerId>& to, const Command& command, TimeMs now) {
  for (const PeerId peer : to) {
    const CommandId id = parts_.tracker.Send(peer, command, now);
    changed_ = true;  // Another process of the scheduler must not give the number again.
    if (command.command != CommandKind::kTrain) continue;
    orders_.push_back({peer, command});
    orders_.back().command.id = id;
  }
}

void JobCoordinator::SendTrainOrders(TimeMs now) {
  const JobPosition& position = plan_->position();
  for (const TrainRound::Order& order : round_->TakeOrders(now)) {
    Command command = MakeCommand(order.command);
    command.until = order.until;
    command.rate = watches_.state().rate;
    command.epoch = position.epoch;
    command.epoch_start = position.epoch_start;
    Send({parts_.members.workers()[order.worker]}, command, now);
  }
}

void JobCoordinator::OnAnswer(PeerId from, const Command& command, const CommandDone& done,
                              TimeMs now) {
  if (failure_) return;
  if (command.command == CommandKind::kAwaitSaved) return OnSaved(from, done, now);
  if (done.code != Code::kOk) {
    if (!OnRefusal(from, command, done, now)) return;
  } else if (command.command == CommandKind::kTrain) {
    KnowWorker(done);
    round_->OnTrained(*parts_.members.WorkerRank(from), done);
    parts_.members.OnCache(from, done.cache);
    collectives_[from] = done.collectives;
    if (const std::string fault = round_->Disagreement(); !fault.empty()) return Fail(3, fault);
    SendTrainOrders(now);
  } else if (command.command == CommandKind::kEvaluate) {
    OnScores(from, done, now);
  } else {
    KnowWorker(done);
    answers_[from] = done;
  }
  if (failure_ || !parts_.tracker.phase_is_answered()) return;
  if (phase_ != Phase::kTrain || round_->complete()) CompletePhase(now);
}

bool JobCoordinator::OnRefusal(PeerId from, const Command& command, const CommandDone& done,
                               TimeMs now) {
  const std::string what = parts_.members.NameOf(from) + ": " + done.message;
  const bool bad_checkpoint = command.command == CommandKind::kLoad &&
                              (done.code == Code::kCorruption || done.code == Code::kNotFound);
  if (bad_checkpoint || command.command == CommandKind::kSave) {
    if (fault_.empty()) fault_ = what;
    return true;
  }
  if (OfOneProcess(done.code) && parts_.give_up) {
    // The phase waits for it until it is lost.
    parts_.tracker.SendAgain(from, command, now);
    parts_.give_up(from, done.message);
  } else {
    Fail(ExitStatusOf(done.code), what);
  }
  return false;
}

void JobCoordinator::CompletePhase(TimeMs now) {
  switch (phase_) {
    case Phase::kSuspended:
    case Phase::kQuiet:
      return;
    case Phase::kMoveDense:
      return Enter(Phase::kMoveSave, now);
    case Phase::kMoveSave:
    case Phase::kMoveServers:
    case Phase::kMoveWorkers:
      return CompleteMove(now);
    case Phase::kLoadServers:
    case Phase::kLoadWorkers:
      return CompleteLoad(now);
    case Phase::kInitDense:
      KnowEpochRows();
      plan_.emplace(*job_, JobPosition(), PastOf(/*loaded=*/false));
      BeginReport(now);
      break;
    case Phase::kTrain:
      CompleteTraining(now);
      break;
    case Phase::kStoreDense:
      plan_->Done();
      break;
    case Phase::kEvaluate:
      CompleteEvaluation(now);
      break;
    case Phase::kDigest:
      CompleteDigest();
      break;
    case Phase::kSave:
      return CompleteSave(now);
    case Phase::kFinish:
      return Enter(Phase::kOver, now);
    case Phase::kOver:
      return;
  }
  if (!failure_) EnterNextStep(now);
}

void JobCoordinator::EnterNextStep(TimeMs now) {
  if (stop_) plan_->Stop();
  if (quiet_wanted_ && plan_->next() == JobStep::kTrain) {
    quiet_since_ = now;
    return Enter(Phase::kQuiet, now);
  }
  switch (plan_->next()) {
    case JobStep::kTrain:
      return Enter(Phase::kTrain, now);
    case JobStep::kStoreDense:
      return Enter(Phase::kStoreDense, now);
    case JobStep::kEvaluate:
      return Enter(Phase::kEvaluate, now);
    case JobStep::kDigest:
      return Enter(Phase::kDigest, now);
    case JobStep::kSave:
      return Enter(Phase::kSave, now);
    case JobStep::kFinish:
      return Enter(Phase::kFinish, now);
  }
}

void JobCoordinator::CompleteLoad(TimeMs now) {
  if (!fault_.empty()) {
    parts_.notice("refused the checkpoint " + start_->folder + ": " + fault_);
    Result<std::optional<FoundCheckpoint>> older = parts_.checkpoints.FindOlder(*start_, fault_);
    if (!older.ok()) return Fail(3, older.status().message());
    start_ = *std::move(older);
    return Enter(Phase::kLoadServers, now);
  }
  if (phase_ == Phase::kLoadServers) return Enter(Phase::kLoadWorkers, now);
  KnowEpochRows();
  trained_ = {};
  const Manifest at_start = start_ ? start_->manifest : Manifest();
  epoch_ = at_start.epoch_sums;
  last_epoch_ = at_start.last_epoch_sums;
  summary_.bad_rows = at_start.bad_rows;
  examples_before_ = at_start.examples;
  watches_ = RunWatches(*job_, at_start.watched);
  evaluations_.clear();
  if (!start_) return Enter(Phase::kInitDense, now);
  if (const std::string other = OtherArithmetic(start_->manifest, arithmetic_); !other.empty()) {
    parts_.warn(other);
  }
  const Manifest& manifest = start_->manifest;
  plan_.emplace(*job_, JobPosition{manifest.clock, manifest.epoch, manifest.epoch_start},
                PastOf(/*loaded=*/true));
  if (!loss_) {
    summary_.resumed_from = manifest.clock;
    parts_.notice("resumed from " + start_->folder + " at step " + std::to_string(manifest.clock));
    if (plan_->finished()) {
      parts_.notice("this job is already finished: there is nothing left to train" +
                    (plan_->stopped_early() ? ", for " + watches_.WhyEnded() : ""));
    }
  }
  BeginReport(now);
  EnterNextStep(now);
}

void JobCoordinator::CompleteTraining(TimeMs now) {
  // Under full_batch every worker has counted the same examples.
  const bool same_for_all = job_->parallel.dataset_strategy == DatasetStrategy::kFullBatch;
  const TrainRound::Sums sums = same_for_all ? round_->sums_of_first() : round_->sums();
  const bool end_of_epoch = round_->end_of_epoch();
  const Clock clock = round_->clock();
  examples_worked_ += sums.examples;
  for (Sums* total : {&trained_, &epoch_}) {
    total->examples += sums.examples;
    total->loss_sum += sums.loss_sum;
  }
  summary_.bad_rows += sums.bad_rows;
  Warn(labels_.Trained(sums.labels, end_of_epoch));
  training_ms_ += now - phase_began_;
  if (end_of_epoch) {
    if (clock == plan_->position().epoch_start) {
      return Fail(2, "data.train: epoch " + std::to_string(plan_->position().epoch + 1) +
                         " has no step: the files hold no example that could be read");
    }
    last_epoch_ = std::exchange(epoch_, Sums());
  }
  plan_->Trained(clock, end_of_epoch);
  ProgressState state = progress();
  if (end_of_epoch) state.epoch_progress = 0;  // Of the epoch that comes next.
  parts_.report.Progress(now, state);
}

void JobCoordinator::KnowWorker(const CommandDone& done) {
  if (done.arithmetic.empty()) return;  // It is a server's.
  arithmetic_.insert(done.arithmetic);
  summary_.dense_rows = done.dense_rows;
  summary_.dense_parameters = done.dense_parameters;
}

void JobCoordinator::Warn(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) parts_.warn(line);
}

void JobCoordinator::OnProgress(PeerId from, Clock clock) {
  const std::optional<uint32_t> rank = parts_.members.WorkerRank(from);
  if (phase_ == Phase::kTrain && rank) round_->OnProgress(*rank, clock);
}

void JobCoordinator::OnTick(TimeMs now) {
  if (failure_) return;
  if (quiet_wanted_ && phase_ == Phase::kTrain) round_->Pause();
  if (phase_ == Phase::kTrain) SendTrainOrders(now);
  if (phase_ == Phase::kSave && save_again_at_ && now >= *save_again_at_) {
    save_again_at_.reset();
    Enter(Phase::kSave, now);
  }
  if (phase_ == Phase::kFinish) DropTheFinished(now);
}

void JobCoordinator::Stop() {
  stop_ = true;
  if (plan_) plan_->Stop();
  if (phase_ == Phase::kTrain) round_->Pause();
}

ProgressState JobCoordinator::progress() const {
  ProgressState state;
  if (plan_) {
    state.clock = plan_->position().clock;
    state.epoch = plan_->position().epoch;
    state.epoch_begun = state.clock != plan_->position().epoch_start;
  }
  const Membership::Progress told = parts_.members.progress();
  state.rate = watches_.state().rate;
  state.examples = trained_.examples;
  state.loss_sum = trained_.loss_sum;
  state.cache = parts_.members.cache();
  if (phase_ != Phase::kTrain) return state;
  state.clock = std::max(state.clock, told.clock);
  state.epoch_begun = true;
  state.epoch_progress = told.epoch_progress;
  const bool same_for_all = job_->parallel.dataset_strategy == DatasetStrategy::kFullBatch;
  const uint64_t copies = same_for_all ? parts_.members.workers().size() : 1;
  const uint64_t examples = not_told_.examples + told.examples / copies;
  if (examples > state.examples) {
    state.examples = examples;
    state.loss_sum = not_told_.loss_sum + told.loss_sum / static_cast<double>(copies);
  }
  return state;
}

void JobCoordinator::Fail(int exit_status, const std::string& message) {
  if (failure_) return;
  failure_ = {exit_status, message};
  parts_.tracker.DropAll();
}

}  // namespace hdps
