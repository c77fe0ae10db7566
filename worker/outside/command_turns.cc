// Executes one command after the other, on the thread of the caller.
#include "worker/outside/command_turns.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/job/job_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/protocol/membership_messages.h"
#include "common/protocol/view.h"

namespace hdps {

CommandTurns::CommandTurns(const TableWorkerOptions& options, NodeChannel& channel,
                           TableExchange& exchange)
    : options_(options),
      channel_(channel),
      exchange_(exchange),
      kept_(*options.job, channel),
      async_(options.job->train.mode == Mode::kAsync) {}

PushedStep CommandTurns::NextStep(uint64_t examples) const {
  return {clock_, examples, train_->rate, train_->epoch, train_->steps_before};
}

// ---- Turns.

Status CommandTurns::Await() {
  while (true) {
    if (channel_.interrupted()) Drop();
    if (channel_.end()) return End();  // Also in the midst of an order.
    if (train_ || evaluation_ || went_back_) {
      const Status restored = RestoreState();
      if (restored.ok()) break;
      if (!channel_.interrupted()) return channel_.end() ? End() : Fail(restored);
      continue;
    }
    const std::optional<Command> command = channel_.NextCommand();
    if (!command) return End();
    const Status status = Execute(*command);
    if (status.ok() || channel_.interrupted()) continue;
    return channel_.end() ? End() : Fail(status);
  }
  if (went_back_) {
    went_back_ = false;
    standing_ = Standing::kWentBack;
    reason_ = "the job went back to the checkpoint of step " + std::to_string(clock_);
    return {Code::kCancelled, reason_};
  }
  channel_.board().Enter(ActivityBoard::kCompute);
  return {};
}

Status CommandTurns::Judge(const Status& failure) {
  if (failure.ok() || failure.code() == Code::kInvalidArgument) return failure;
  if (channel_.interrupted()) {
    const Status then = Await();
    // Before the first step nothing is lost by a way back.
    return then.ok() ? Status(Code::kCancelled, "the job began anew") : then;
  }
  return channel_.end() ? End() : Fail(failure);
}

Status CommandTurns::End() {
  // What a job that has ended was at is not taken back.
  const bool done = !channel_.end() || channel_.end()->ok();
  standing_ = done ? Standing::kEnded : Standing::kFailed;
  reason_ = done ? "the job has ended" : channel_.end()->message();
  train_.reset();
  evaluation_.reset();
  return {Code::kCancelled, reason_};
}

Status CommandTurns::Fail(const Status& failure) {
  LOG(ERROR) << failure.message();
  channel_.Fail(failure);
  standing_ = Standing::kFailed;
  reason_ = failure.message();
  return failure;
}

void CommandTurns::Drop() {
  train_.reset();
  pause_.reset();
  evaluation_.reset();
  empty_step_.reset();
  exchange_.Reset();
}

void CommandTurns::Report() {
  Heartbeat report;
  report.clock = clock_;
  report.examples = examples_;
  report.finished = finished_;
  report.wants_checkpoint = wanted_checkpoint_;
  channel_.Report(report);
}

bool CommandTurns::PauseHasCome() {
  if (!pause_) pause_ = channel_.TakePause();
  return pause_.has_value();
}

bool CommandTurns::WaitFor(std::optional<Ticket> ticket) {
  while (!PauseHasCome() && !channel_.interrupted() && !channel_.end()) {
    if (ticket && channel_.Ready(*ticket)) return true;
    channel_.WaitForAnything();
  }
  return false;
}

Status CommandTurns::EndStep(uint64_t examples) {
  ++clock_;
  examples_ += examples;
  trained_ += examples;
  Report();
  const bool holds = wanted_checkpoint_ > 0 && clock_ >= wanted_checkpoint_;
  if (!PauseHasCome() && clock_ < train_->until && holds) {
    channel_.board().Enter("checkpoint");
    WaitFor(std::nullopt);
  }
  if (!pause_ && clock_ < train_->until && !channel_.interrupted() && !channel_.end()) return {};
  const Status answered = AnswerTraining();
  return answered.ok() ? Await() : Judge(answered);
}

Status CommandTurns::AnswerTraining() {
  exchange_.CancelPrefetch();
  HDPS_RETURN_IF_ERROR(exchange_.Settle());
  CommandDone done = AnswerTo(*train_);
  done.examples = trained_;
  train_.reset();
  channel_.Answer(std::move(done));
  if (!pause_) return {};
  channel_.Answer(AnswerTo(*std::exchange(pause_, std::nullopt)));
  return {};
}

CommandDone CommandTurns::AnswerTo(const Command& command) const {
  CommandDone done;
  done.id = command.id;
  done.clock = clock_;
  return done;
}

// ---- Commands.

Status CommandTurns::Execute(const Command& command) {
  channel_.board().Enter(CommandKindName(command.command));
  CommandDone done = AnswerTo(command);
  switch (command.command) {
    case CommandKind::kTrain:
      follows_ = finished_;
      train_ = command;
      trained_ = 0;
      return clock_ >= command.until ? AnswerTraining() : Status();
    case CommandKind::kLoad:
      Drop();
      clock_ = base_ = command.until;
      finish_told_ = false;
      last_finish_.reset();
      if (!command.keep) {
        examples_ = 0;
        restores_ = true;
        went_back_ = went_back_ || has_begun_;
        finished_ = finished_ && !went_back_;
        wanted_checkpoint_ = 0;
        given_state_.reset();
      }
      Report();
      break;
    case CommandKind::kStoreDense:
      HDPS_RETURN_IF_ERROR(StoreState());
      break;
    case CommandKind::kEvaluate:
      evaluation_ = command;
      return {};
    case CommandKind::kInitDense:  // The caller's state is stored when it is saved.
    case CommandKind::kPause:      // Nothing is running.
    case CommandKind::kFinish:
      break;
    default:  // Commands for servers.
      done.code = Code::kInvalidArgument;
      done.message = std::string("a worker cannot ") + CommandKindName(command.command);
      break;
  }
  channel_.Answer(std::move(done));
  return {};
}

Status CommandTurns::AnswerEvaluation(const OutsideFigures& figures) {
  CommandDone done = AnswerTo(*evaluation_);
  for (const auto& [name, value] : figures) done.figures.push_back({name, value});
  evaluation_.reset();
  channel_.Answer(std::move(done));
  return Await();
}

void CommandTurns::WantCheckpoint(std::optional<std::string> state) {
  wanted_checkpoint_ = clock_ + 1;
  given_state_ = std::move(state);
}

Status CommandTurns::StoreState() {
  // A state that the caller has not taken note of yet is at the servers already.
  if (restores_ || went_back_ || standing_ != Standing::kSteps) return {};
  // If the job goes on after the checkpoint, the next empty step tells it again.
  if (std::exchange(finish_told_, false)) HDPS_RETURN_IF_ERROR(kept_.DropFinish(clock_));
  const uint32_t rank = channel_.rank().value;
  std::optional<std::string> state;
  if (given_state_ && clock_ == wanted_checkpoint_) {
    state = std::move(given_state_);
  } else if (options_.state) {
    HDPS_ASSIGN_OR_RETURN(state, options_.state());
  } else if (given_state_) {
    LOG(WARNING) << "the checkpoint of step " << clock_ << " has no state of worker " << rank
                 << ": the one it was given is of step " << wanted_checkpoint_
                 << ", and another worker was further; ask for checkpoints in every worker, or "
                    "give a function that returns the state";
  }
  if (clock_ >= wanted_checkpoint_) {
    wanted_checkpoint_ = 0;
    given_state_.reset();
    Report();
  }
  return state ? kept_.Store(rank, clock_, *state) : Status();
}

Status CommandTurns::RestoreState() {
  if (!restores_) return {};
  HDPS_ASSIGN_OR_RETURN(restored_, kept_.Read(channel_.rank().value, base_));
  restores_ = false;
  return {};
}

// ---- Steps without examples.

Result<std::optional<Clock>> CommandTurns::LastFinish() {
  if (channel_.view()->workers.size() == 1) return std::optional(clock_);
  HDPS_RETURN_IF_ERROR(kept_.StoreFinish(base_, clock_));
  return kept_.ReadFinishes(base_);
}

// In sync and ssp each worker's step needs those of the others. A worker that has finished stores
// the clock of that, then reads those of all. So the last one to finish knows that no step follows
// after the largest of these clocks, and does not make it; without its push the others, who cannot
// know, do not finish that step either. All workers end at that clock.
Status CommandTurns::TakeEmptyStep() {
  if (!finish_told_) {
    finish_told_ = true;
    HDPS_ASSIGN_OR_RETURN(last_finish_, LastFinish());
  }
  if (!empty_step_ && last_finish_ && clock_ >= *last_finish_) {
    WaitFor(std::nullopt);
    return {};
  }
  if (!empty_step_) {
    HDPS_ASSIGN_OR_RETURN(const Ticket awaited, exchange_.BeginEmptyStep(NextStep(0)));
    empty_step_ = EmptyStep{awaited};
  }
  if (!WaitFor(empty_step_->awaited)) return {};
  const Ticket awaited = std::exchange(empty_step_, std::nullopt)->awaited;
  HDPS_RETURN_IF_ERROR(exchange_.EndEmptyStep(clock_, awaited));
  ++clock_;
  Report();
  return {};
}

// In async no step needs another worker's. This worker waits for a pause, answers where it is, and
// obeys the next order, by which the scheduler leads it to where the others are.
Status CommandTurns::FollowOthers() {
  constexpr Clock kFarAway = Clock{1} << 61;  // No worker trains so far: the order has no end.
  if (!follows_ || train_->until >= kFarAway) {
    WaitFor(std::nullopt);
    return {};
  }
  HDPS_RETURN_IF_ERROR(exchange_.Settle());
  clock_ = train_->until;
  exchange_.Announce(clock_);
  Report();
  return {};
}

Status CommandTurns::FinishSteps() {
  if (!finished_) {
    finished_ = true;
    finish_told_ = false;
    Report();
  }
  while (standing_ == Standing::kSteps && !evaluation_) {
    Status status;
    if (train_) status = async_ ? FollowOthers() : TakeEmptyStep();
    if (!status.ok() || channel_.interrupted() || channel_.end()) {
      HDPS_RETURN_IF_ERROR(status.ok() ? Await() : Judge(status));
      continue;
    }
    if (train_ && (PauseHasCome() || clock_ >= train_->until)) status = AnswerTraining();
    HDPS_RETURN_IF_ERROR(status.ok() ? Await() : Judge(status));
  }
  return {};
}

}  // namespace hdps
