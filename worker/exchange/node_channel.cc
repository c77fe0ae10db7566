// Two queues join the threads: events go to the trainer, requests to the node.
#include "worker/exchange/node_channel.h"

#include <utility>

#include "common/platform/failpoint.h"
#include "common/protocol/membership_messages.h"
#include "common/protocol/view.h"

namespace hdps {
namespace {

// A turn lasts for less, unless this process was stopped.
constexpr TimeMs kStandstillMs = 5000;

}  // namespace

NodeChannel::NodeChannel(std::function<void()> wake, MonotonicClock& clock,
                         int64_t board_timeout_ms, SectionAllocator* sections)
    : wake_(std::move(wake)),
      clock_(clock),
      board_timeout_ms_(board_timeout_ms),
      sections_(sections),
      board_(clock) {}

std::optional<Command> NodeChannel::NextCommand() {
  const ActivityBoard::Waiting waiting(&board_, WaitReason::kCommand);
  while (true) {
    if (interrupted_) {
      interrupted_ = false;
      view_ = std::move(next_view_->view);
      rank_ = next_view_->rank;
      next_view_.reset();
    }
    if (!commands_.empty() || end_.has_value()) break;
    TakeIn(true);
  }
  if (commands_.empty()) return std::nullopt;
  Command command = std::move(commands_.front());
  commands_.pop_front();
  HDPS_FAILPOINT("worker.command.begun");
  return command;
}

std::optional<Command> NodeChannel::TakePause() {
  while (TakeIn(false)) {
  }
  if (commands_.empty() || commands_.front().command != CommandKind::kPause) return std::nullopt;
  Command command = std::move(commands_.front());
  commands_.pop_front();
  return command;
}

bool NodeChannel::AwaitInterruption(int64_t timeout_ms, const View* view) {
  const ActivityBoard::Waiting waiting(&board_, WaitReason::kCommand);
  const auto has_come = [&] {
    return interrupted_ || end_.has_value() || (view != nullptr && !SameWorkers(*view, *view_));
  };
  const uint64_t wait = ++waits_begun_;
  Request([this, timeout_ms, wait](ComputeRequests&) { awaited_ = {now_ + timeout_ms, wait}; });
  while (!has_come() && late_wait_ != wait) TakeIn(true);
  return has_come();
}

std::shared_ptr<const View> NodeChannel::WaitForView() {
  const ActivityBoard::Waiting waiting(&board_, WaitReason::kCommand);
  while (view_ == nullptr && !end_.has_value()) TakeIn(true);
  HDPS_FAILPOINT("worker.view.first");
  return view_;
}

Ticket NodeChannel::Start(std::vector<ServerRequest> requests, std::vector<ServerRequest> then) {
  const Ticket ticket{next_ticket_++};
  RequestIfCurrent([ticket, requests = std::move(requests),
                    then = std::move(then)](ComputeRequests& node) mutable {
    node.Start(ticket, std::move(requests), std::move(then));
  });
  return ticket;
}

bool NodeChannel::Ready(Ticket ticket) {
  while (TakeIn(false)) {
  }
  return replies_.contains(ticket) || interrupted_ || end_.has_value();
}

void NodeChannel::Cancel(Ticket ticket) {
  if (replies_.erase(ticket) > 0) return;
  cancelled_.insert(ticket);
  Request([ticket](ComputeRequests& node) { node.Cancel(ticket); });
}

Result<std::vector<Frame>> NodeChannel::Wait(Ticket ticket, int64_t* arrived_ns) {
  const ActivityBoard::Waiting waiting(&board_, WaitReason::kMembers);
  while (!replies_.contains(ticket) || interrupted_) {
    if (interrupted_) return Interruption();
    if (end_.has_value()) return EndStatus();
    TakeIn(true);
  }
  Replies replies = std::move(replies_.extract(ticket).mapped());
  if (arrived_ns != nullptr) *arrived_ns = replies.arrived_ns;
  if (!replies.status.ok()) return replies.status;
  return std::move(replies.frames);
}

Status NodeChannel::WaitForStep() {
  const ActivityBoard::Waiting waiting(&board_, WaitReason::kData);
  if (!interrupted_ && !end_.has_value()) TakeIn(true);
  if (interrupted_) return Interruption();
  return end_.has_value() ? EndStatus() : Status();
}

Buffer NodeChannel::MakeBytes(ServerId to, size_t size, std::span<std::byte>* bytes) {
  return MakeSection(sections_, view_->servers[to.value].peer, size, bytes);
}

Status NodeChannel::Put(const std::string& key, const std::string& value) {
  if (interrupted_) return Interruption();
  if (end_.has_value()) return EndStatus();
  Request([key, value](ComputeRequests& node) { node.Put({key, value}); });
  return Status();
}

Result<std::string> NodeChannel::Get(const std::string& key) {
  const ActivityBoard::Waiting waiting(&board_, WaitReason::kGroup);
  const std::shared_ptr<const View> view = view_;
  Request([this, key](ComputeRequests& node) {
    asked_[key] = now_;
    node.Get({key});
  });
  while (!values_.contains(key)) {
    if (interrupted_) return Interruption();
    if (end_.has_value()) return EndStatus();
    if (view != nullptr && !SameWorkers(*view, *view_)) {
      return Status(Code::kUnavailable, "a worker of the group was replaced while it was formed");
    }
    TakeIn(true);
  }
  const std::optional<KvValue> value = std::move(values_.extract(key).mapped());
  if (!value.has_value()) {
    return Status(Code::kTimeout, "nobody has put '" + key + "' on the scheduler's board for " +
                                      std::to_string(board_timeout_ms_ / 1000) + " s");
  }
  return value->value;
}

void NodeChannel::Answer(CommandDone done) {
  RequestIfCurrent([done = std::move(done)](ComputeRequests& node) { node.Answer(done); });
  HDPS_FAILPOINT("worker.command.answered");
}

void NodeChannel::Report(const Heartbeat& progress) {
  RequestIfCurrent([progress](ComputeRequests& node) { node.Report(progress); });
}

void NodeChannel::Fail(const Status& status) {
  Request([status](ComputeRequests& node) { node.Fail(status); });
}

void NodeChannel::RequestIfCurrent(std::function<void(ComputeRequests&)> make) {
  if (interrupted_) return;
  Request(NodeRequest{view_ == nullptr ? 0 : view_->restarts, std::move(make)});
}

Status NodeChannel::Interruption() const {
  return Status(Code::kCancelled, "the job goes back to a checkpoint");
}

void NodeChannel::Request(NodeRequest request) {
  if (requests_.Push(std::move(request))) wake_();
}

void NodeChannel::Enqueue(Event event) {
  (void)events_.Push(std::move(event));  // A closed queue has no reader any more.
}

bool NodeChannel::TakeIn(bool wait) {
  if (wait && give_up_) waits_ = true;
  std::optional<Event> event = wait ? events_.Pop() : events_.TryPop();
  waits_ = false;
  if (event.has_value()) {
    Sort(*std::move(event));
    return true;
  }
  // A blocking Pop() returns nothing only if the queue is closed.
  if (wait && !end_.has_value()) end_ = Status();
  return false;
}

void NodeChannel::Sort(Event event) {
  if (auto* view = std::get_if<NewView>(&event)) {
    // The first view, or one that does not interrupt the work.
    if (!interrupted_ && (view_ == nullptr || view->view->restarts == view_->restarts)) {
      view_ = std::move(view->view);
      rank_ = view->rank;
      return;
    }
    interrupted_ = true;
    next_view_ = *std::move(view);
    commands_.clear();
    replies_.clear();
    cancelled_.clear();
  } else if (auto* command = std::get_if<Command>(&event)) {
    commands_.push_back(std::move(*command));
  } else if (auto* replies = std::get_if<Replies>(&event)) {
    const Ticket ticket = replies->ticket;
    if (cancelled_.erase(ticket) == 0) replies_.emplace(ticket, std::move(*replies));
  } else if (auto* value = std::get_if<KvValue>(&event)) {
    values_[value->key] = *value;
  } else if (const auto* passed = std::get_if<InterruptionLate>(&event)) {
    late_wait_ = passed->wait;
  } else if (std::holds_alternative<TimeToAsk>(event)) {
    GiveUpIfAsked();
  } else if (std::holds_alternative<NextStep>(event)) {
    return;  // It has ended a wait.
  } else if (auto* late = std::get_if<StoreLate>(&event)) {
    values_.try_emplace(late->key);
  } else {
    end_ = std::get<End>(event).status;
  }
}

void NodeChannel::GiveUpIfAsked() {
  if (end_.has_value() || !give_up_()) return;
  end_ = Status(Code::kUnavailable, "the program has given up a wait");
  Fail(*end_);
}

Status NodeChannel::EndStatus() const {
  if (end_->ok()) return Status(Code::kCancelled, "the job has ended");
  return Status(Code::kCancelled, "the job has ended: " + end_->message());
}

void NodeChannel::OnTurn(ComputeRequests& node, TimeMs now) {
  const TimeMs gap = now - std::exchange(now_, now);
  // After a standstill of this process its replies wait to be read.
  if (node.place_empty() || gap >= kStandstillMs) {
    if (awaited_) awaited_->until += gap;
    for (auto& [key, since] : asked_) since += gap;
  }
  while (std::optional<NodeRequest> request = requests_.TryPop()) {
    if (request->restarts.value_or(restarts_) == restarts_) request->make(node);
  }
  if (awaited_ && now >= awaited_->until) {
    Enqueue(InterruptionLate{awaited_->wait});
    awaited_.reset();
  }
  constexpr TimeMs kAskEveryMs = 100;
  if (waits_ && now - asked_at_ >= kAskEveryMs) {
    asked_at_ = now;
    Enqueue(TimeToAsk());
  }
  for (auto asked = asked_.begin(); asked != asked_.end();) {
    if (now - asked->second < board_timeout_ms_) {
      ++asked;
      continue;
    }
    Enqueue(StoreLate{asked->first});
    asked = asked_.erase(asked);
  }
}

void NodeChannel::Close() {
  requests_.Close();
  events_.Close();
}

void NodeChannel::OnView(std::shared_ptr<const View> view, WorkerId rank) {
  const bool others = told_view_ != nullptr && !SameWorkers(*told_view_, *view);
  if (others || view->restarts != restarts_) interruption_told_ = view->view;
  restarts_ = view->restarts;
  told_view_ = view;
  Enqueue(NewView{std::move(view), rank});
}
void NodeChannel::OnCommand(const Command& command) { Enqueue(command); }
void NodeChannel::OnReplies(Ticket ticket, Status status, std::vector<Frame> replies) {
  Enqueue(Replies{ticket, std::move(status), std::move(replies), clock_.NowNs()});
}
void NodeChannel::OnKvValue(const KvValue& value) {
  if (!value.found || asked_.erase(value.key) == 0) return;
  Enqueue(value);
}
void NodeChannel::OnEnd(Status status) { Enqueue(End{std::move(status)}); }

}  // namespace hdps
