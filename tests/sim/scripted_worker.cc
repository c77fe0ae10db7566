// Pull, check, push, advance: the shape of a training step without a model.
#include "tests/sim/scripted_worker.h"

#include <glog/logging.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

namespace hdps::sim {
namespace {

std::string BoardKey(uint32_t rank) { return "worker " + std::to_string(rank); }

}  // namespace

ScriptedWorker::ScriptedWorker(const ScriptOptions& options, Tally* tally)
    : options_(options), tally_(tally), random_(options.seed) {}

void ScriptedWorker::OnTime(TimeMs now) {
  now_ = now;
  if (!compute_until_ || now < *compute_until_) return;
  compute_until_.reset();
  pulling_ = false;
  PushStep(clock_);
  Continue();
}

void ScriptedWorker::OnView(std::shared_ptr<const View> view, WorkerId rank) {
  view_ = std::move(view);
  rank_ = rank.value;
  requests_->Put({BoardKey(rank_), BoardKey(rank_) + " is here"});
  for (uint32_t w = 0; w < view_->workers.size(); ++w) requests_->Get({BoardKey(w)});
}

void ScriptedWorker::OnKvValue(const KvValue& value) {
  if (!value.found || value.value != value.key + " is here") trouble_ = "a wrong word on the board";
  if (!met_.insert(value.key).second) trouble_ = "one word twice";
  if (met_.size() == view_->workers.size()) Continue();
}

void ScriptedWorker::OnEnd(Status status) {
  if (ended()) trouble_ = "ended twice";
  end_ = std::move(status);
}

void ScriptedWorker::OnCommand(const Command& command) {
  CommandDone done;
  done.id = command.id;
  switch (command.command) {
    case CommandKind::kTrain:
      if (training_) trouble_ = "told to train while training";
      training_ = command;
      if (!train_from_) train_from_ = now_;
      Continue();
      return;
    case CommandKind::kPause:
      pauses_.push_back(command.id);
      if (!training_) AnswerTraining(clock_);
      return;
    case CommandKind::kLoad:
      clock_ = acknowledged_ = command.until;
      tally_->StartAt(rank_, clock_);
      break;
    default:
      break;
  }
  done.clock = clock_;
  requests_->Answer(done);
}

Clock ScriptedWorker::Target() const {
  const Clock end_of_epoch = training_->epoch_start + options_.steps_per_epoch;
  return std::min(training_->until, end_of_epoch);
}

void ScriptedWorker::Continue() {
  if (!training_ || met_.size() < view_->workers.size() || ended()) return;
  const bool stop = clock_ >= Target() || !pauses_.empty();
  if (stop && !pulling_ && acknowledged_ == clock_) {
    AnswerTraining(training_->epoch_start + options_.steps_per_epoch);
  } else if (stop || pulling_) {
    return;
  } else if (!options_.pull) {
    FillPipeline();
  } else if (!options_.await_push || acknowledged_ == clock_) {
    StartStep();
  }
}

void ScriptedWorker::AnswerTraining(Clock end_of_epoch) {
  CommandDone done;
  done.clock = clock_;
  if (training_) {
    done.id = training_->id;
    done.end_of_epoch = clock_ == end_of_epoch;
    done.examples = static_cast<uint64_t>(clock_);
    training_.reset();
    trained_at_ = now_;
    requests_->Answer(done);
  }
  for (const CommandId pause : pauses_) {
    done.id = pause;
    requests_->Answer(done);
  }
  pauses_.clear();
}

void ScriptedWorker::Send(Purpose purpose, std::vector<ServerRequest> requests,
                          std::vector<ServerRequest> then) {
  const Ticket ticket{next_ticket_++};
  waiting_[ticket] = purpose;
  requests_->Start(ticket, std::move(requests), std::move(then));
}

void ScriptedWorker::SplitKeys(Clock clock) {
  keys_[0] = SharedKeys();
  keys_[1].clear();
  for (uint32_t w = 0; w < view_->workers.size(); ++w) keys_[1].push_back(OwnKey(w));
  keys_[1].push_back(FreshKey(rank_, clock));
  KeysOfTable tables[2];
  for (uint32_t t = 0; t < 2; ++t) tables[t] = {TableId{t}, ShardBy::kKey, kDims[t], keys_[t]};
  split_.Compute(view_->shards, static_cast<uint32_t>(view_->servers.size()), tables);
}

void ScriptedWorker::StartStep() {
  pulling_ = true;
  SplitKeys(clock_);
  acknowledged_before_ = tally_->Acknowledged();
  std::vector<ServerRequest> pulls =
      split_.Pulls({.clock = clock_, .mode = PullMode::kTrain, .pushed = clock_});
  pulled_servers_.clear();
  for (const ServerRequest& pull : pulls) pulled_servers_.push_back(pull.server.value);
  Send(Purpose::kPull, std::move(pulls));
}

void ScriptedWorker::OnRows(const std::vector<Frame>& replies) {
  std::span<float> rows[2];
  for (uint32_t t = 0; t < 2; ++t) {
    rows_[t].assign(keys_[t].size() * kDims[t], -1.0f);
    rows[t] = rows_[t];
  }
  for (size_t i = 0; i < replies.size(); ++i) {
    PullReply reply;
    if (!Check(DecodeMessage(replies[i], &reply))) return;
    if (!Check(split_.Scatter(ServerId{pulled_servers_[i]}, reply, rows))) return;
  }
  tally_->CheckRead(rank_, clock_, acknowledged_before_, rows_[0], rows_[1]);
  const auto spread = static_cast<uint64_t>(options_.compute_ms_max - options_.compute_ms_min + 1);
  compute_until_ = now_ + options_.compute_ms_min + static_cast<TimeMs>(random_.Below(spread));
}

void ScriptedWorker::PushStep(Clock clock) {
  // Of the rows that were read, a step changes the shared ones, its own and its fresh one.
  std::span<const float> gradients[2];
  for (uint32_t t = 0; t < 2; ++t) {
    gradients_[t].clear();
    for (const Key key : keys_[t]) {
      const bool mine = t == 0 || key == OwnKey(rank_) || key == FreshKey(rank_, clock);
      for (uint32_t j = 0; j < kDims[t]; ++j) {
        gradients_[t].push_back(mine ? -static_cast<float>(j + 1) : 0.0f);
      }
    }
    gradients[t] = gradients_[t];
  }
  tally_->PushStarted(rank_);
  ++clock_;
  std::vector<ServerRequest> advances = Advances(split_.num_servers(), clock_);
  std::vector<ServerRequest> pushes =
      split_.Pushes(Sequence{next_sequence_++}, clock, 1, gradients);
  if (!options_.advance_early) {
    Send(Purpose::kPush, std::move(pushes), std::move(advances));
  } else {
    Send(Purpose::kPush, std::move(pushes));
    Send(Purpose::kAdvance, std::move(advances));
  }
}

void ScriptedWorker::OnPushed(const std::vector<Frame>& replies) {
  for (const Frame& frame : replies) {
    PushAck ack;
    if (!Check(DecodeMessage(frame, &ack))) return;
    if (!Check(Status(ack.code, ack.message))) return;
  }
  tally_->PushAcknowledged(rank_);
  ++acknowledged_;
  FinishStep();
}

void ScriptedWorker::FillPipeline() {
  while (clock_ < Target() && clock_ - acknowledged_ < Clock{options_.pushes_at_once}) {
    SplitKeys(clock_);
    PushStep(clock_);
  }
}

void ScriptedWorker::OnReplies(Ticket ticket, Status status, std::vector<Frame> replies) {
  const auto at = waiting_.find(ticket);
  if (at == waiting_.end()) {
    trouble_ = "an answer to nothing";
    return;
  }
  const Purpose purpose = at->second;
  waiting_.erase(at);
  if (!Check(status)) return;
  if (purpose == Purpose::kPull) OnRows(replies);
  if (purpose == Purpose::kPush) OnPushed(replies);
}

void ScriptedWorker::FinishStep() {
  Heartbeat progress;
  progress.clock = acknowledged_;
  progress.examples = static_cast<uint64_t>(acknowledged_);
  requests_->Report(progress);
  if (acknowledged_ == options_.mistaken_at) {
    requests_->Fail(Status(Code::kInvalidArgument, "train.csv:7:2: 'x': expected a number"));
    return;
  }
  Continue();
}

bool ScriptedWorker::Check(const Status& status) {
  if (status.ok()) return true;
  if (trouble_.empty()) trouble_ = status.message();
  requests_->Fail(status);
  return false;
}

}  // namespace hdps::sim
