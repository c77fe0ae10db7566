// The phases of a job.
#include "scheduler/job_coordinator.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/base/exit_status.h"
#include "scheduler/evaluation.h"
#include "scheduler/wait_notices.h"

namespace hdps {
namespace {

// A member that has ended cannot say so again; after this long without a sign it is taken at its
// word.
constexpr TimeMs kGoneAfterMs = 2000;

Command MakeCommand(CommandKind kind) {
  Command command;
  command.command = kind;
  return command;
}

}  // namespace

JobCoordinator::JobCoordinator(std::shared_ptr<const Job> job, std::string out, const Parts& parts)
    : job_(std::move(job)), out_(std::move(out)), parts_(parts), labels_(*job_) {}

void JobCoordinator::Begin(std::optional<FoundCheckpoint> start, TimeMs now) {
  began_ = now;
  start_ = std::move(start);
  Enter(start_ ? Phase::kLoadServers : Phase::kInitDense, now);
}

void JobCoordinator::Enter(Phase phase, TimeMs now) {
  phase_ = phase;
  phase_began_ = now;
  changed_ = true;
  orders_.clear();
  fault_.clear();
  answers_.clear();
  const std::vector<PeerId> first_worker = {parts_.members.workers().front()};
  switch (phase) {
    case Phase::kSuspended:
      return;
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
      return Tell(servers ? parts_.members.holders() : parts_.members.workers(), load, now);
    }
    case Phase::kInitDense:
      return Tell(first_worker, MakeCommand(CommandKind::kInitDense), now);
    case Phase::kTrain:
      round_.emplace(parts_.members.workers().size(), plan_->position().clock, plan_->until());
      if (stop_) round_->Pause();
      return SendTrainOrders(now);
    case Phase::kStoreDense:
      return Tell(first_worker, MakeCommand(CommandKind::kStoreDense), now);
    case Phase::kEvaluate:
      return Tell(parts_.members.workers(), MakeCommand(CommandKind::kEvaluate), now);
    case Phase::kDigest:
      return Tell(parts_.members.servers(), MakeCommand(CommandKind::kDigest), now);
    case Phase::kSave:
      return BeginSave(now);
    case Phase::kFinish:
      FillSummary(now);
      if (const Status written = WriteSummary(parts_.files, out_, summary_); !written.ok()) {
        return Fail(3, "the job is done, but its summary is not written: " + written.message());
      }
      for (const PeerId peer : parts_.members.all()) parts_.members.Release(peer);
      return Tell(parts_.members.all(), MakeCommand(CommandKind::kFinish), now);
    case Phase::kOver:
      return;
  }
}

void JobCoordinator::Tell(const std::vector<PeerId>& to, const Command& command, TimeMs now) {
  for (const PeerId peer : to) {
    const CommandId id = parts_.tracker.Send(peer, command, now);
    if (command.command != CommandKind::kTrain) continue;
    orders_.push_back({peer, command});
    orders_.back().command.id = id;
    changed_ = true;
  }
}

JobState JobCoordinator::state(TimeMs now) const {
  JobState state;
  state.phase = phase_;
  if (plan_) state.plan = plan_->state();
  state.stop = stop_;
  state.trained = trained_;
  state.epoch = epoch_;
  state.last_epoch = last_epoch_;
  state.examples_before = examples_before_;
  state.examples_worked = examples_worked_;
  state.training_ms = training_ms_ + (phase_ == Phase::kTrain ? now - phase_began_ : 0);
  state.wall_ms = now - began_;
  state.summary = summary_;
  state.orders = orders_;
  return state;
}

bool JobCoordinator::TakeOver(const JobState& state, TimeMs now) {
  began_ = now - state.wall_ms;
  stop_ = state.stop;
  examples_worked_ = state.examples_worked;
  training_ms_ = state.training_ms;
  summary_ = state.summary;
  ++summary_.failures_survived;
  phase_ = Phase::kSuspended;
  if (state.phase < Phase::kTrain || state.phase >= Phase::kOver) return false;
  trained_ = state.trained;
  epoch_ = state.epoch;
  last_epoch_ = state.last_epoch;
  examples_before_ = state.examples_before;
  plan_.emplace(*job_, state.plan);
  parts_.report.Begin(now, progress());
  if (state.phase != Phase::kTrain) {
    EnterNextStep(now);
    return true;
  }
  phase_ = Phase::kTrain;
  phase_began_ = now;
  changed_ = true;
  round_.emplace(parts_.members.workers().size(), plan_->position().clock, plan_->until());
  round_->TakeOver();
  if (stop_) round_->Pause();
  orders_ = state.orders;
  for (const JobState::Order& order : orders_) {
    parts_.tracker.SendAgain(order.worker, order.command, now);
  }
  return true;
}

void JobCoordinator::BeginSave(TimeMs now) {
  const Clock clock = plan_->position().clock;
  const Result<std::string> folder = parts_.checkpoints.Prepare(clock);
  if (!folder.ok()) {
    fault_ = folder.status().message();
    return CompleteSave(now);
  }
  Command save = MakeCommand(CommandKind::kSave);
  save.until = clock;
  save.path = *folder;
  Tell(parts_.members.servers(), save, now);
}

void JobCoordinator::SendTrainOrders(TimeMs now) {
  const JobPosition& position = plan_->position();
  for (const TrainRound::Order& order : round_->TakeOrders(now)) {
    Command command = MakeCommand(order.command);
    command.until = order.until;
    command.epoch = position.epoch;
    command.epoch_start = position.epoch_start;
    Tell({parts_.members.workers()[order.worker]}, command, now);
  }
}

void JobCoordinator::OnAnswer(PeerId from, const Command& command, const CommandDone& done,
                              TimeMs now) {
  if (failure_) return;
  if (done.code != Code::kOk) {
    OnRefusal(from, command, done);
  } else if (command.command == CommandKind::kTrain) {
    KnowWorker(done);
    round_->OnTrained(*parts_.members.WorkerRank(from), done);
    parts_.members.OnCache(from, done.cache);
    if (const std::string fault = round_->Disagreement(); !fault.empty()) return Fail(3, fault);
    SendTrainOrders(now);
  } else {
    KnowWorker(done);
    answers_[from] = done;
  }
  if (failure_ || !parts_.tracker.empty()) return;
  if (phase_ != Phase::kTrain || round_->complete()) CompletePhase(now);
}

void JobCoordinator::OnRefusal(PeerId from, const Command& command, const CommandDone& done) {
  const std::string what = parts_.members.NameOf(from) + ": " + done.message;
  const bool bad_checkpoint =
      command.command == CommandKind::kLoad && done.code == Code::kCorruption;
  if (bad_checkpoint || command.command == CommandKind::kSave) {
    if (fault_.empty()) fault_ = what;
    return;
  }
  Fail(ExitStatusOf(done.code), what);
}

void JobCoordinator::CompletePhase(TimeMs now) {
  switch (phase_) {
    case Phase::kSuspended:
      return;
    case Phase::kLoadServers:
    case Phase::kLoadWorkers:
      return CompleteLoad(now);
    case Phase::kInitDense:
      plan_.emplace(*job_, JobPosition(), /*loaded=*/false);
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
  trained_ = {};
  const auto sums = sums_at_.find(start_ ? start_->manifest.clock : 0);
  const EpochSums at_start = sums == sums_at_.end() ? EpochSums() : sums->second;
  epoch_ = at_start.epoch;
  last_epoch_ = at_start.last_epoch;
  summary_.bad_rows = at_start.bad_rows;
  examples_before_ = start_ ? start_->manifest.examples : 0;
  if (!start_) return Enter(Phase::kInitDense, now);
  if (const std::string other = OtherArithmetic(start_->manifest, arithmetic_); !other.empty()) {
    parts_.warn(other);
  }
  const Manifest& manifest = start_->manifest;
  plan_.emplace(*job_, JobPosition{manifest.clock, manifest.epoch, manifest.epoch_start},
                /*loaded=*/true);
  if (!loss_) {
    summary_.resumed_from = manifest.clock;
    parts_.notice("resumed from " + start_->folder + " at step " + std::to_string(manifest.clock));
    if (plan_->finished()) {
      parts_.notice("this job is already finished: there is nothing left to train");
    }
  }
  BeginReport(now);
  EnterNextStep(now);
}

void JobCoordinator::BeginReport(TimeMs now) {
  if (!loss_) return parts_.report.Begin(now, progress());
  const TimeMs stood = now - loss_->since;
  loss_.reset();
  parts_.report.WentBack(now, progress(), stood);
  parts_.notice("the job goes on from " + PointOfReturn() + " with " +
                std::to_string(parts_.members.servers().size()) + " server(s) and " +
                std::to_string(parts_.members.workers().size()) + " worker(s); it stood for " +
                TenthsOf(stood));
}

void JobCoordinator::Suspend(TimeMs now) {
  if (phase_ == Phase::kSuspended || phase_ == Phase::kOver) return;
  // What the round at hand has done is lost with it, as is all since the checkpoint.
  const ProgressState state = progress();
  if (phase_ == Phase::kTrain) training_ms_ += now - phase_began_;
  const auto& newest = parts_.checkpoints.newest();
  const Clock clock = newest ? newest->manifest.clock : 0;
  const uint64_t examples = newest ? newest->manifest.examples : 0;
  if (plan_) {
    summary_.steps_again += static_cast<uint64_t>(std::max<Clock>(state.clock - clock, 0));
    const uint64_t reached = examples_before_ + state.examples;
    summary_.examples_again += reached - std::min(reached, examples);
    examples_worked_ += state.examples - trained_.examples;
  }
  parts_.tracker.DropAll();
  round_.reset();
  Enter(Phase::kSuspended, now);
}

void JobCoordinator::ServersLost(size_t servers, TimeMs now) {
  summary_.failures_survived += static_cast<uint32_t>(servers);
  changed_ = true;
  if (phase_ != Phase::kLoadServers && phase_ != Phase::kSave && phase_ != Phase::kDigest) return;
  parts_.tracker.DropAll();
  Enter(phase_, now);
}

void JobCoordinator::GoBack(const Loss& loss, TimeMs now) {
  CHECK(phase_ == Phase::kSuspended);
  loss_ = loss;
  summary_.failures_survived += static_cast<uint32_t>(loss.members);
  start_ = parts_.checkpoints.newest();
  plan_.reset();
  Enter(Phase::kLoadServers, now);
}

std::string JobCoordinator::PointOfReturn() const {
  const auto& newest = parts_.checkpoints.newest();
  if (!newest) return "the first step, for there is no checkpoint yet";
  return "step " + std::to_string(newest->manifest.clock) + ", checkpoint " + newest->folder;
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

void JobCoordinator::CompleteEvaluation(TimeMs now) {
  std::vector<const CommandDone*> parts;
  LabelTally labels;
  for (const PeerId worker : parts_.members.workers()) {
    parts.push_back(&answers_.at(worker));
    labels.Add(parts.back()->label_tally);
  }
  const Evaluation evaluation = JoinParts(job_->model.loss, parts);
  summary_.evaluation = evaluation;
  const ProgressState state = progress();
  parts_.report.Evaluated(now, state, evaluation);
  parts_.notice("epoch " + std::to_string(EpochOf(state, job_->train.epochs)) + ", step " +
                std::to_string(state.clock) + ": " + Describe(evaluation));
  Warn(labels_.Evaluated(labels));
  plan_->Done();
}

void JobCoordinator::CompleteDigest() {
  summary_.digest[0] = summary_.digest[1] = summary_.rows = 0;
  summary_.row_counts = {};
  summary_.row_bytes = summary_.server_bytes_max = 0;
  for (const PeerId server : parts_.members.servers()) {
    const CommandDone& done = answers_.at(server);
    summary_.digest[0] += done.digest[0];
    summary_.digest[1] += done.digest[1];
    summary_.rows += done.rows;
    summary_.row_counts.Add(done.counts);
    summary_.row_bytes += done.row_bytes;
    summary_.server_bytes_max = std::max(summary_.server_bytes_max, done.process_bytes);
  }
  // Slices of dense layers lie among the rows, but are none to a person.
  summary_.rows -= std::min(summary_.rows, summary_.dense_rows);
  plan_->Done();
}

void JobCoordinator::CompleteSave(TimeMs now) {
  const JobPosition& position = plan_->position();
  if (fault_.empty()) {
    std::vector<SavedFile> files;
    for (const PeerId server : parts_.members.servers()) {
      const CommandDone& done = answers_.at(server);
      files.insert(files.end(), done.files.begin(), done.files.end());
    }
    const Status committed =
        parts_.checkpoints.Commit(position, examples_before_ + trained_.examples,
                                  {arithmetic_.begin(), arithmetic_.end()}, std::move(files));
    if (!committed.ok()) fault_ = committed.message();
  }
  const bool last = plan_->stopped() || plan_->finished();
  if (fault_.empty()) {
    parts_.notice("saved " + parts_.checkpoints.latest());
    sums_at_[position.clock] = {epoch_, last_epoch_, summary_.bad_rows};
    while (sums_at_.size() > job_->checkpoint.keep + 1) sums_at_.erase(sums_at_.begin());
    plan_->Done();
  } else {
    const std::string& latest = parts_.checkpoints.latest();
    const std::string message = "the checkpoint of step " + std::to_string(position.clock) +
                                " could not be saved: " + fault_ + "; the newest whole one is " +
                                (latest.empty() ? "none" : latest);
    if (last) return Fail(3, message);
    parts_.notice(message + "; training goes on");
    plan_->Done(JobPlan::Outcome::kFailed);
  }
  EnterNextStep(now);
}

void JobCoordinator::FillSummary(TimeMs now) {
  const Sums& epoch = epoch_.examples > 0 ? epoch_ : last_epoch_;
  summary_.job = job_->name;
  summary_.mode = WordOf(job_->train.mode);
  summary_.workers = static_cast<uint32_t>(parts_.members.workers().size());
  summary_.servers = static_cast<uint32_t>(parts_.members.servers().size());
  summary_.steps = plan_->position().clock;
  summary_.examples = examples_before_ + trained_.examples;
  if (epoch.examples > 0) {
    summary_.train_logloss = epoch.loss_sum / static_cast<double>(epoch.examples);
  }
  if (training_ms_ > 0) {
    summary_.examples_per_second =
        static_cast<double>(examples_worked_) * 1000 / static_cast<double>(training_ms_);
  }
  summary_.wall_seconds = static_cast<double>(now - began_) / 1000;
  summary_.checkpoint = parts_.checkpoints.latest();
  summary_.staleness_max = parts_.members.staleness_max();
  summary_.cache = parts_.members.cache();
  summary_.refused_checkpoints = parts_.checkpoints.refused();
  if (plan_->stopped() && !plan_->finished()) summary_.stopped_at = plan_->position().clock;
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
  if (phase_ == Phase::kTrain) SendTrainOrders(now);
  if (phase_ == Phase::kFinish) DropTheFinished(now);
}

void JobCoordinator::DropTheFinished(TimeMs now) {
  for (const CommandTracker::Waiting& waiting : parts_.tracker.waiting()) {
    const TimeMs patience = std::max<TimeMs>(job_->cluster.dead_after_ms, 5 * kGoneAfterMs);
    if (parts_.members.SilentFor(waiting.member, now) < kGoneAfterMs &&
        now - waiting.since < patience) {
      continue;
    }
    parts_.notice(parts_.members.NameOf(waiting.member) + " has not confirmed the end of the job");
    parts_.tracker.Drop(waiting.member);
  }
  if (parts_.tracker.empty()) Enter(Phase::kOver, now);
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
  state.examples = trained_.examples;
  state.loss_sum = trained_.loss_sum;
  state.cache = parts_.members.cache();
  if (phase_ != Phase::kTrain) return state;
  state.clock = std::max(state.clock, told.clock);
  state.epoch_begun = true;
  state.epoch_progress = told.epoch_progress;
  const bool same_for_all = job_->parallel.dataset_strategy == DatasetStrategy::kFullBatch;
  const uint64_t copies = same_for_all ? parts_.members.workers().size() : 1;
  if (told.examples / copies > state.examples) {
    state.examples = told.examples / copies;
    state.loss_sum = told.loss_sum / static_cast<double>(copies);
  }
  return state;
}

void JobCoordinator::Fail(int exit_status, const std::string& message) {
  if (failure_) return;
  failure_ = {exit_status, message};
  parts_.tracker.DropAll();
}

}  // namespace hdps
