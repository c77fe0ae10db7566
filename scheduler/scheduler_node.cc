// Frames and ticks of the scheduler: liveness, commands, the store, and the end.
#include "scheduler/scheduler_node.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/planning/strategy_of_job.h"
#include "common/platform/failpoint.h"
#include "scheduler/scheduler_inside.h"

namespace hdps {

void SchedulerNode::Impl::On(PeerId from, const JoinRequest& message, const Frame&) {
  const bool known = rendezvous.Has(from);
  if (std::optional<JoinRefused> refusal = rendezvous.Admit(from, message, now)) {
    if (StandsBy(from, message)) return;
    refused_last = message.host + " was refused: " + refusal->message;
    NoticeOutside("refused " + message.host + ": " + refusal->message);
    return Send(from, *refusal);
  }
  standing_by.erase(from);
  if (members && members->Has(from)) {
    members->OnJoinAgain(from, now);
    return Send(from, members->view());
  }
  if (members) {  // It takes the place of a lost one with the next tick, if the job stands for it.
    if (!known && job.cluster.replicas > 0 && message.role == Role::kServer &&
        !recovery.under_way()) {
      Notice(rendezvous.NameOf(from) + " has joined; it holds no rows yet");
    }
    return;
  }
  if (rendezvous.complete()) Form();
}

void SchedulerNode::Impl::On(PeerId from, const Heartbeat& message, const Frame&) {
  if (dismissed.contains(from) && !members->Has(from)) {
    return Send(from, Abort{0, "it has left the job, which goes on with others"});
  }
  if (!members || !members->Has(from)) {
    // Of a scheduler before this one, or given up while it stood still or could not be reached.
    return Send(from, Abort{3,
                            "the job goes on without this process: the scheduler does not know "
                            "it, or took it for lost"});
  }
  if (const std::string& how = members->given_up(from); !how.empty()) {
    return Send(from, Abort{3, "the job goes on without this process: " + how});
  }
  rendezvous.Heard(from, now);
  const std::string trouble = members->trouble(from);
  members->OnHeartbeat(from, message, now);
  TellTrouble(from, trouble, members->trouble(from));
  if (recovery.under_way() && !members->deaf(from) && rendezvous.Return(from, now)) {
    Notice(members->NameOf(from) + " is heard again and has its place back");
  }
  if (message.view == members->view().view) coordinator->OnProgress(from, message.clock);
  Send(from, HeartbeatAck{members->view().view, message.number});
  if (message.view < members->view().view) Send(from, members->view());
}

void SchedulerNode::Impl::On(PeerId from, const CommandDone& message, const Frame&) {
  if (!members || !members->Has(from)) return;
  const std::optional<Command> command = tracker.TakeAnswered(from, message.id);
  HDPS_FAILPOINT("scheduler.command.answered");
  if (command) coordinator->OnAnswer(from, *command, message, now);
}

void SchedulerNode::Impl::On(PeerId from, const StopRequest& message, const Frame&) {
  if (Knows(from)) Stop(NameOf(from) + " was told to stop: " + message.reason);
}

void SchedulerNode::Impl::On(PeerId from, const Abort& message, const Frame&) {
  if (!Knows(from)) return;
  const std::string name = NameOf(from);
  if (!message.member_only || !options.members_return) {
    return Leave(message.exit_status, name + ": " + message.message);
  }
  if (members) return GiveUp(from, message.message);
  Notice(name + " cannot go on: " + message.message + "; its place is free again");
  rendezvous.Vacate(from);
}

void SchedulerNode::Impl::GiveUp(PeerId peer, const std::string& how) {
  // It says so more than once; and what it says after the end changes nothing.
  if (members->released(peer) || !members->given_up(peer).empty()) return;
  members->GiveUp(peer, how);
  const std::string& place = members->PlaceOf(peer);
  failures.Add(place, members->NameOf(peer) + ": " + how, coordinator->progress().clock);
  if (!failures.is_loop(place)) return;
  Leave(3, place + " has failed " + std::to_string(FailureCount::kMax) +
               " times without a step of progress between, at first " +
               failures.first_cause(place) + ". The job goes on from " +
               coordinator->PointOfReturn() + " when it is started again");
}

void SchedulerNode::Impl::TickLinks() {
  for (const CutLink& cut :
       FindCutLinks(members->LinkReports(), members->servers(), job.cluster.dead_after_ms)) {
    const std::string links = std::to_string(cut.links);
    const std::string silent = TenthsOf(cut.for_ms);
    GiveUp(cut.peer,
           cut.is_worker
               ? "it has heard none of the " + links + " servers for " + silent
               : links + " worker(s) have heard nothing of it for " + silent +
                     ", though it beats; perhaps they cannot reach the address it listens at");
    if (leaving) return;
  }
}

void SchedulerNode::Impl::TellTrouble(PeerId peer, const std::string& last,
                                      const std::string& current) {
  if (last == current) return;
  if (!current.empty()) return voice.Warn(members->NameOf(peer) + " waits: " + current);
  Notice(members->NameOf(peer) + " goes on");
}

void SchedulerNode::Impl::On(PeerId from, const KvPut& message, const Frame& frame) {
  if (!Knows(from)) return;
  if (!store.Put(message)) {
    return Leave(3, NameOf(from) + " put '" + message.key + "' into a store that is full (" +
                        std::to_string(KeyValueStore::kEntriesMax) + " entries)");
  }
  state_changed = true;
  if (coordinator) KeepState();
  Send(from, store.Get(message.key), frame.header.request_id);
}

void SchedulerNode::Impl::On(PeerId from, const KvGet& message, const Frame& frame) {
  if (Knows(from)) Send(from, store.Get(message.key), frame.header.request_id);
}

void SchedulerNode::Impl::TickGathering() {
  for (const std::string& gone : rendezvous.Expire(now)) {
    NoticeOutside(gone + " went silent before the cluster was complete; its place is free again");
  }
  const TimeMs waited = now - *began;
  if (waited >= int64_t{job.cluster.rendezvous_timeout_s} * 1000) {
    return Leave(3, "after " + SecondsOf(waited) + " the cluster is not complete: missing " +
                        rendezvous.Missing() + "; here: " + rendezvous.Present());
  }
  if (now - noticed_at >= kNoticeEveryMs) {
    noticed_at = now;
    Notice("waiting for " + rendezvous.Missing() + "; here: " + rendezvous.Present());
  }
}

void SchedulerNode::Impl::TickRunning() {
  if (recovery.under_way()) {
    TickRecovery();
  } else if (coordinator->needs_restart()) {
    Reform();
  } else if (scaling.under_way()) {
    TickScaling();
  }
  if (leaving) return;
  coordinator->OnTick(now);
  if (coordinator->failure()) {
    return Leave(coordinator->failure()->exit_status, coordinator->failure()->message);
  }
  if (coordinator->finished()) {
    if (voice.progress) voice.progress("");
    Notice(SummaryTable(coordinator->summary(), options.out));
    done = true;
    exit_reason = "the job is finished";
    for (const auto& [peer, since] : standing_by) Send(peer, Abort{0, exit_reason});
    for (const PeerId peer : rendezvous.peers()) {
      if (!members->Has(peer)) Send(peer, Abort{0, exit_reason});
    }
    ForgetState();
    return;
  }
  TickLinks();
  if (leaving) return;
  std::vector<PeerId> lost = members->Lost(now);
  for (const PeerId peer : rendezvous.Ended()) {
    if (members->Has(peer) && !members->released(peer) && std::ranges::count(lost, peer) == 0) {
      lost.push_back(peer);
    }
  }
  if (!lost.empty()) Lose(lost);
  SendDue();
  if (now - noticed_at >= kNoticeEveryMs) {
    noticed_at = now;
    for (const std::string& line : waits.Lines(tracker, *members, now)) Notice(line);
  }
  Report();
}

void SchedulerNode::Impl::SendDue() {
  KeepState();
  for (const CommandTracker::Due& due : tracker.TakeDue(now)) {
    Send(due.to, due.command);
    HDPS_FAILPOINT("scheduler.command.sent");
  }
}

void SchedulerNode::Impl::Report() {
  if (const std::optional<std::string> trouble = report->TakeTrouble()) {
    Notice("metrics.jsonl is not written while this lasts: " + *trouble);
  }
  if (!coordinator->training() || now - reported_at < options.report_interval_ms) return;
  reported_at = now;
  const std::string line = report->Progress(now, coordinator->progress());
  if (voice.progress) return voice.progress(line);
  if (now - progress_noticed_at < kNoticeEveryMs) return;
  progress_noticed_at = now;
  Notice(line);
}

void SchedulerNode::Impl::ForgiveOwnStandstill(TimeMs at) {
  // While this process stood still it could hear nobody: that is no member's silence.
  const TimeMs gap = at - now;
  if (gap < static_cast<TimeMs>(job.cluster.heartbeat_ms)) return;
  rendezvous.ForgiveSilence(gap);
  // Whose loss is noticed so much later is waited for so much longer.
  for (auto& [peer, since] : standing_by) since += gap;
  if (members) members->ForgiveSilence(gap);
}

void SchedulerNode::Impl::Stop(const std::string& reason) {
  if (leaving || done || stopping) return;
  stopping = true;
  if (!coordinator) return Leave(0, "stopped before the cluster was complete: " + reason);
  if (recovery.under_way()) {
    return Leave(3, "stopped while " + recovery.names() + " lost: " + reason +
                        "; the job goes on from " + coordinator->PointOfReturn() +
                        " when it is started again");
  }
  Notice("stopping: " + reason + "; the steps at hand are finished, then the job is saved");
  coordinator->Stop();
}

void SchedulerNode::Impl::Leave(int status, const std::string& reason) {
  if (leaving || done) return;
  leaving = true;
  exit_status = status;
  exit_reason = reason;
  if (voice.progress) voice.progress("");
  tracker.DropAll();
  if (members) ForgetState();
  farewells_left = kFarewells;
  SayFarewell();
}

void SchedulerNode::Impl::SayFarewell() {
  for (const PeerId peer : rendezvous.peers()) Send(peer, Abort{exit_status, exit_reason});
  for (const auto& [peer, since] : standing_by) Send(peer, Abort{exit_status, exit_reason});
  if (--farewells_left <= 0) done = true;
}

SchedulerNode::SchedulerNode(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SchedulerNode::~SchedulerNode() = default;

Result<std::unique_ptr<SchedulerNode>> SchedulerNode::Make(const SchedulerOptions& options,
                                                           ProgressListener voice,
                                                           FileSystem& files) {
  CHECK(options.job != nullptr);
  HDPS_RETURN_IF_ERROR(ValidateCluster(*options.job, options.num_servers, options.num_workers));
  auto impl = std::make_unique<Impl>(options, std::move(voice), files);
  if (options.resume == Resume::kNever && impl->checkpoints.HasAny()) {
    return Status(Code::kInvalidArgument,
                  "--resume=never, but " + JoinPath(options.out, "checkpoint") +
                      " holds checkpoints; give the job another --out, or remove them");
  }
  HDPS_ASSIGN_OR_RETURN(impl->start, impl->checkpoints.FindStart());
  impl->FindState();
  for (const auto& line : WarningsOf(impl->job, options.num_workers)) impl->voice.Warn(line);
  for (const std::string& refused : impl->checkpoints.refused()) {
    impl->Notice("refused the checkpoint " + refused);
  }
  const Status made = files.MakeDirectories(JoinPath(options.out, "checkpoint"));
  if (!made.ok()) {
    return Status(Code::kInvalidArgument,
                  "--out=" + options.out + " cannot be written to: " + made.message());
  }
  if (const ParallelMode mode = options.job->parallel.parallel_mode;
      mode != ParallelMode::kData && mode != ParallelMode::kStandAlone) {
    HDPS_ASSIGN_OR_RETURN(const Strategy strategy, StrategyOf(*options.job, options.num_workers));
    HDPS_RETURN_IF_ERROR(SaveStrategy(files, *options.job, strategy));
    impl->Notice(StrategyLine(*options.job, strategy));
  }
  impl->report = std::make_unique<RunReport>(files, options.out, *options.job,
                                             impl->start.has_value() || impl->before.has_value());
  return std::unique_ptr<SchedulerNode>(new SchedulerNode(std::move(impl)));
}

void SchedulerNode::OnFrame(PeerId from, Frame frame) {
  Impl& impl = *impl_;
  const auto kind = static_cast<MessageKind>(frame.header.kind);
  if (impl.leaving) {
    // Also in the loop's last moments: whoever still speaks has missed the end.
    if (kind == MessageKind::kJoinRequest || kind == MessageKind::kHeartbeat) {
      impl.Send(from, Abort{impl.exit_status, impl.exit_reason});
    }
    return;
  }
  if (impl.done) {
    // Who never got a place has not been told to end with the others.
    if (kind == MessageKind::kJoinRequest) impl.Send(from, Abort{0, impl.exit_reason});
    return;
  }
  if (impl.members && impl.members->Has(from)) impl.members->Heard(from, impl.now);
  if (!impl.Dispatch<JoinRequest, Heartbeat, CommandDone, StopRequest, Abort, KvPut, KvGet,
                     StatusRequest, ScaleRequest>(from, frame)) {
    impl.NoticeOutside("dropped a frame of kind " + std::string(MessageKindName(kind)) + " from " +
                       impl.NameOf(from) + ": it is not the scheduler's");
  }
  // The members stand until they hear what comes next: that does not wait for a tick.
  if (impl.coordinator && impl.tracker.has_new()) impl.SendDue();
}

void SchedulerNode::OnTick(TimeMs now) {
  Impl& impl = *impl_;
  if (impl.done) return;
  if (!impl.began) {
    impl.began = impl.now = impl.noticed_at = now;
  }
  impl.ForgiveOwnStandstill(now);
  impl.now = now;
  if (const auto line = impl.outside.LeftOut(now)) impl.Notice(*line);
  if (impl.leaving) return impl.SayFarewell();
  if (impl.before) impl.TakeOver();
  if (impl.coordinator) {
    impl.TickRunning();
  } else {
    impl.TickGathering();
  }
}

Output SchedulerNode::TakeOutput() { return std::exchange(impl_->output, Output()); }
bool SchedulerNode::done() const { return impl_->done; }
int SchedulerNode::exit_status() const { return impl_->exit_status; }
const std::string& SchedulerNode::exit_reason() const { return impl_->exit_reason; }
void SchedulerNode::RequestStop(const std::string& reason) { impl_->Stop(reason); }
void SchedulerNode::Fail(int status, const std::string& reason) { impl_->Leave(status, reason); }

}  // namespace hdps
