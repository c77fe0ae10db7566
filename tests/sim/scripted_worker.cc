// Implements pull, check, push and advance: the shape of a training step without a model.
#include "tests/sim/scripted_worker.h"

#include <glog/logging.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <utility>

#include "common/protocol/board_messages.h"
#include "common/protocol/membership_messages.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/row_messages.h"
#include "worker/exchange/push_plan.h"

namespace hdps::sim {
namespace {

std::string BoardKey(uint32_t rank) { return "worker " + std::to_string(rank); }

// Returns one positive and four negatives; the share `auc` of the negatives has a lower score.
void Score(double auc, CommandDone* done) {
  std::vector<float> scores(5, 0.75f), labels(5, 0);
  scores[4] = 0.5f;
  labels[4] = 1;
  for (int i = 0; i < 4 && i + 1 <= 4 * auc; ++i) scores[static_cast<size_t>(i)] = 0.25f;
  done->scores = Buffer::CopyOf(std::span<const float>(scores));
  done->labels = Buffer::CopyOf(std::span<const float>(labels));
  done->examples = 5;
}

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
  const bool goes_on = view_ != nullptr && view->restarts == view_->restarts;
  const auto is = [](const Member& one, const Member& other) { return one.peer == other.peer; };
  const bool same_workers = goes_on && std::ranges::equal(view->workers, view_->workers, is);
  if (view_ != nullptr && !goes_on) DropWork();
  view_ = std::move(view);
  rank_ = rank.value;
  if (same_workers) return;
  met_.clear();
  requests_->Put({BoardKey(rank_), BoardKey(rank_) + " is here"});
  for (uint32_t w = 0; w < view_->workers.size(); ++w) requests_->Get({BoardKey(w)});
}

// Drops all requests, because the job goes back to a checkpoint and will not answer them.
void ScriptedWorker::DropWork() {
  training_.reset();
  takes_up_ = false;
  pauses_.clear();
  compute_until_.reset();
  pulling_ = false;
  waiting_.clear();
  cancelled_.clear();
  steps_.clear();
  met_.clear();
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
      if (command.rate != (options_.judged ? JudgedRate(command.epoch) : 1)) {
        trouble_ = "told to train epoch " + std::to_string(command.epoch) + " at a wrong rate";
      }
      training_ = command;
      if (!train_from_) train_from_ = now_;
      if (command.begun) AskStand();
      Continue();
      return;
    case CommandKind::kPause:
      pauses_.push_back(command.id);
      if (!training_) AnswerTraining(clock_);
      return;
    case CommandKind::kLoad:
      some_have_ = 0;
      clock_ = acknowledged_ = command.until;
      if (Counts()) tally_->StartAt(rank_, clock_);
      break;
    case CommandKind::kEvaluate:
      if (rank_ == 0) Score(kJudgedAuc[clock_ / options_.steps_per_epoch - 1], &done);
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
  if (!training_ || takes_up_ || met_.size() < view_->workers.size() || ended()) return;
  const bool stop = clock_ >= Target() || (!pauses_.empty() && clock_ >= some_have_);
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
  // Prefetched rows will be requested again.
  for (const auto& [clock, step] : std::exchange(steps_, {})) {
    for (const Step::Asked* asked : {&step.ahead, &step.last}) {
      if (!asked->ticket) continue;
      waiting_.erase(*asked->ticket);
      cancelled_.insert(*asked->ticket);
      requests_->Cancel(*asked->ticket);
    }
  }
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

Ticket ScriptedWorker::Send(Purpose purpose, std::vector<ServerRequest> requests,
                            std::vector<ServerRequest> then) {
  const Ticket ticket{next_ticket_++};
  waiting_[ticket] = purpose;
  requests_->Start(ticket, std::move(requests), std::move(then));
  return ticket;
}

ScriptedWorker::Step* ScriptedWorker::NewStep(Clock clock) {
  Step& step = steps_[clock];
  step.keys[0] = SharedKeys();
  for (uint32_t w = 0; w < view_->workers.size(); ++w) step.keys[1].push_back(OwnKey(w));
  step.keys[1].push_back(FreshKey(rank_, clock, options_.rows_leave));
  KeysOfTable tables[2];
  for (uint32_t t = 0; t < 2; ++t) {
    tables[t] = {TableId{t}, ShardBy::kKey, kDims[t], step.keys[t]};
    step.rows[t].assign(step.keys[t].size() * kDims[t], -1.0f);
  }
  step.split.Compute(view_->shards, static_cast<uint32_t>(view_->servers.size()), tables);
  step.split_in = view_->view;
  step.list = next_list_++;
  return &step;
}

void ScriptedWorker::Ask(Step::Asked* asked, Purpose purpose, std::vector<ServerRequest> requests) {
  // Sent later, because a reply may come at once.
  asked->ticket = Ticket{next_ticket_};
  Send(purpose, std::move(requests));
}

void ScriptedWorker::PrefetchRows() {
  for (Clock clock = clock_ + 1; clock <= clock_ + Clock{options_.lookahead}; ++clock) {
    if (clock >= Target() || steps_.contains(clock)) continue;
    Step* step = NewStep(clock);
    step->held = tally_->Acknowledged();
    step->held[rank_] = clock_;
    step->pushed = clock_;
    std::vector<ServerRequest> requests = step->ahead.plan.Pull(
        step->split, {clock, PullMode::kPrefetch, clock_, step->list, options_.wire});
    step->since.assign(view_->servers.size(), kNotRead);
    for (const ServerRequest& request : requests) {
      step->since[request.server.value] = clock_ + (options_.since_late ? 1 : 0);
    }
    Ask(&step->ahead, Purpose::kPrefetch, std::move(requests));
  }
}

void ScriptedWorker::StartStep() {
  pulling_ = true;
  const auto at = steps_.find(clock_);
  if (at != steps_.end()) {
    // In sync the least age of prefetched rows is known even before they arrive.
    if (!at->second.ahead.ticket || options_.repairs) Repair(&at->second);
  } else {
    Step* step = NewStep(clock_);
    step->held = tally_->Acknowledged();
    step->held[rank_] = clock_;
    Ask(&step->last, Purpose::kPull,
        step->last.plan.Pull(step->split,
                             {clock_, PullMode::kTrain, clock_, step->list, options_.wire}));
  }
  if (!options_.await_push) PrefetchRows();
}

void ScriptedWorker::Repair(Step* step) {
  Ask(&step->last, Purpose::kPull,
      step->last.plan.Repair(
          step->split, {clock_, clock_, step->list, step->since, options_.repairs, options_.wire}));
}

bool ScriptedWorker::PlaceAhead(Step* step, const std::vector<Frame>& replies) {
  const std::vector<std::span<float>> rows(step->rows, step->rows + 2);
  for (size_t i = 0; i < replies.size(); ++i) {
    const ServerId server = step->ahead.plan.asked()[i].server;
    PullReply reply;
    if (!Check(DecodeMessage(replies[i], &reply))) return false;
    if (!Check(step->ahead.plan.Scatter(i, reply, rows))) return false;
    if (options_.repairs && reply.min_clock < step->pushed) {
      trouble_ = "rows ahead are older than was asked for";
    }
    if (!step->last.ticket) {
      step->since[server.value] = reply.min_clock + (options_.since_late ? 1 : 0);
    }
  }
  return true;
}

bool ScriptedWorker::Place(Step* step, const std::vector<Frame>& replies) {
  const std::vector<std::span<float>> rows(step->rows, step->rows + 2);
  for (size_t i = 0; i < replies.size(); ++i) {
    PullReply reply;
    if (!Check(DecodeMessage(replies[i], &reply))) return false;
    if (!Check(step->last.plan.Scatter(i, reply, rows))) return false;
  }
  return true;
}

void ScriptedWorker::OnRows(Ticket ticket, const std::vector<Frame>& replies) {
  const auto at = std::find_if(steps_.begin(), steps_.end(), [&](const auto& s) {
    return s.second.ahead.ticket == ticket || s.second.last.ticket == ticket;
  });
  if (at == steps_.end()) {
    trouble_ = "rows of no step";
    return;
  }
  Step& step = at->second;
  if (step.last.ticket == ticket) {
    step.last_replies = replies;
    if (step.ahead.ticket) return;  // The prefetched rows are placed first.
  } else {
    if (!PlaceAhead(&step, replies)) return;
    step.ahead.ticket.reset();
    const bool its_turn = pulling_ && at->first == clock_;
    if (its_turn && !step.last.ticket) Repair(&step);
    if (step.last_replies.empty()) return;
  }
  if (!Place(&step, step.last_replies)) return;
  step.last.ticket.reset();
  if (Counts()) tally_->CheckRead(rank_, clock_, step.held, step.rows[0], step.rows[1]);
  PrefetchRows();
  const auto spread = static_cast<uint64_t>(options_.compute_ms_max - options_.compute_ms_min + 1);
  compute_until_ = now_ + options_.compute_ms_min + static_cast<TimeMs>(random_.Below(spread));
}

void ScriptedWorker::AskStand() {
  takes_up_ = true;
  std::vector<ServerRequest> questions;
  for (uint32_t s = 0; s < view_->servers.size(); ++s) {
    questions.push_back({ServerId{s}, EncodeMessage(AdvanceRequest{.clock = 0, .asks = true})});
  }
  Send(Purpose::kStand, std::move(questions));
}

void ScriptedWorker::OnStand(const std::vector<Frame>& replies) {
  std::optional<AdvanceAck> least;
  some_have_ = 0;
  for (const Frame& frame : replies) {
    AdvanceAck ack;
    if (!Check(DecodeMessage(frame, &ack))) return;
    VLOG(1) << now_ << " worker " << rank_ << " in view " << view_->view.value << " stands at "
            << ack.clock << ", " << ack.pushed << ", " << ack.reached << " at "
            << frame.header.sender;
    some_have_ = std::max(some_have_, ack.reached);
    if (!least || ack.pushed < least->pushed) least = ack;
  }
  takes_up_ = false;
  clock_ = acknowledged_ = least->pushed;
  const Clock counted = clock_ - training_->since;
  if (counted > 0 && least->counts.examples != static_cast<uint64_t>(counted)) {
    trouble_ = "the counts of the place are not those of its steps";
  }
  if (Counts()) tally_->TakeUp(rank_, clock_);
  Send(Purpose::kAdvance, AdvanceRequests(static_cast<uint32_t>(view_->servers.size()), clock_));
  Continue();
}

void ScriptedWorker::FillPipeline() {
  while (clock_ < Target() && clock_ - acknowledged_ < Clock{options_.pushes_at_once}) {
    NewStep(clock_);
    PushStep(clock_);
  }
}

void ScriptedWorker::OnReplies(Ticket ticket, Status status, std::vector<Frame> replies) {
  if (cancelled_.erase(ticket) > 0) return;
  const auto at = waiting_.find(ticket);
  if (at == waiting_.end()) {
    trouble_ = "an answer to nothing";
    return;
  }
  const Purpose purpose = at->second;
  waiting_.erase(at);
  if (!Check(status)) return;
  if (purpose == Purpose::kPull || purpose == Purpose::kPrefetch) OnRows(ticket, replies);
  if (purpose == Purpose::kPush) OnPushed(replies);
  if (purpose == Purpose::kStand) OnStand(replies);
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
