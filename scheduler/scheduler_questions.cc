// Answers callers that are no members, and lets the job be watched.
#include <string>
#include <utility>

#include "common/platform/monotonic_clock.h"
#include "scheduler/picture/panels.h"
#include "scheduler/report/job_status.h"
#include "scheduler/scheduler_node.h"

namespace hdps {

void SchedulerNode::BeginWatch(bool continued) {
  if (continued) watch_.TakeFormerLines();
  report_->run().TellLines([this](const std::string& line) { watch_.TakeLine(line); });
}

StatusReply SchedulerNode::StatusNow() const {
  StatusReply status =
      StatusOfJob(*options_.job, rendezvous_, admission_, changes_, tracker_, now_);
  balancer_.AddTo(&status);
  if (!copies_.trouble().empty()) status.state += "; " + copies_.trouble();
  return status;
}

WatchedJob SchedulerNode::WatchedNow() const {
  WatchedJob job{.members = changes_.formed() ? &changes_.members() : nullptr,
                 .rendezvous = rendezvous_,
                 .status = StatusNow(),
                 .progress_line = report_->run().line(),
                 .copies = copies_.figures()};
  if (coordinator_) {
    job.progress = coordinator_->progress();
    job.examples = coordinator_->examples();
    job.shards_moved = balancer_.shards_moved();
    job.losses = coordinator_->summary().failures_survived;
    job.arithmetic.assign(coordinator_->arithmetic().begin(), coordinator_->arithmetic().end());
  }
  if (end_.over()) {
    job.ended = end_.last_word().message;
    job.failed = end_.last_word().exit_status != kExitDone;
  }
  return job;
}

void SchedulerNode::TickWatch() {
  watch_.LookAt(checkpoints_, now_);
  notices_.Say(watch_.OnTick(now_, [this] { return WatchedNow(); }));
}

void SchedulerNode::EndWatch() {
  watch_.LookAt(checkpoints_, now_);
  notices_.Say(watch_.Finish(now_, WatchedNow()));
}

void SchedulerNode::On(PeerId from, const StatusRequest&, uint64_t request_id) {
  outbox_.Send(from, StatusNow(), request_id);
}

void SchedulerNode::On(PeerId from, const PanelRequest& message, uint64_t request_id) {
  const std::shared_ptr<const JobPicture> picture =
      watch_.Ask(now_, [this] { return WatchedNow(); });
  PanelReply reply;
  const std::optional<std::string> text = PanelJson(*picture, message.panel, message.since);
  if (text) {
    reply.text = Buffer::CopyOf(std::span<const char>(*text));
  } else {
    reply.code = Code::kNotFound;
    reply.message = "there is no panel of that name; there are";
    for (const std::string_view name : PanelNames()) reply.message += " " + std::string(name);
  }
  outbox_.Send(from, std::move(reply), request_id);
}

void SchedulerNode::On(PeerId from, const ScaleRequest& message, uint64_t request_id) {
  const Scaling::Answer answer = changes_.OnRequest(from, message, now_);
  if (answer.accepted) {
    notices_.Say(answer.reply.message);
    kept_state_.ChangedForMachine();
  }
  outbox_.Send(from, answer.reply, request_id);
}

void SchedulerNode::On(PeerId from, const JobRequest&, uint64_t request_id) {
  outbox_.Send(from, TextOfJob(options_), request_id);
}

void SchedulerNode::On(PeerId from, const RowPlacesRequest&, uint64_t request_id) {
  outbox_.Send(from, PlacesOfRows(options_, rendezvous_, changes_), request_id);
}

void SchedulerNode::On(PeerId from, const TracePart& message, uint64_t) {
  if (!changes_.formed() || !changes_.members().Has(from)) return;
  trace_.OnPart(from, changes_.members().NameOf(from), message);
}

void SchedulerNode::On(PeerId from, const TraceRequest& message, uint64_t request_id) {
  const Membership* const members = changes_.formed() ? &changes_.members() : nullptr;
  outbox_.Send(from, trace_.OnRequest(message, members, now_), request_id);
}

HeartbeatAck SchedulerNode::AckOf(uint64_t heartbeat) const {
  return {changes_.members().view().view, heartbeat,
          options_.clock == nullptr ? 0 : options_.clock->NowNs(), trace_.order(),
          changes_.recovery().under_way()};
}

void SchedulerNode::TickTrace() {
  trace_.OnTick(changes_.members(), now_);
  if (!trace_.TakeChanged()) return;
  for (const PeerId peer : changes_.members().all()) outbox_.Send(peer, AckOf(0));
}

}  // namespace hdps
