// Frames and ticks of the scheduler: rendezvous, liveness, the store, and the end.
#include "scheduler/scheduler_node.h"

#include <glog/logging.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "common/protocol/messages.h"
#include "scheduler/checkpoint_catalog.h"
#include "scheduler/command_tracker.h"
#include "scheduler/job_coordinator.h"
#include "scheduler/key_value_store.h"
#include "scheduler/membership.h"
#include "scheduler/recovery.h"
#include "scheduler/rendezvous.h"
#include "scheduler/replica_plan.h"
#include "scheduler/run_report.h"
#include "scheduler/validate_cluster.h"
#include "scheduler/wait_notices.h"

namespace hdps {
namespace {

// Nobody answers an Abort, and one copy may be lost: so often is it said, a tick apart.
constexpr int kFarewells = 5;
constexpr ViewId kFirstView{1};
// So many who find every place taken may wait for a loss that has not been noticed yet.
constexpr size_t kStandingByMax = 64;

}  // namespace

// Invariant: members and coordinator are there exactly from the complete cluster on.
struct SchedulerNode::Impl {
  Impl(const SchedulerOptions& o, ProgressListener v, FileSystem& f)
      : options(o),
        job(*o.job),
        voice(std::move(v)),
        files(f),
        rendezvous({.num_servers = o.num_servers,
                    .num_workers = o.num_workers,
                    .num_shards = o.job->cluster.shards,
                    .job_digest = JobDigest(*o.job),
                    .dead_after_ms = o.job->cluster.dead_after_ms}),
        recovery(o.job->cluster),
        tracker(o.command_retry_ms),
        checkpoints(f, JoinPath(o.out, "checkpoint"), o.job) {}

  void Notice(const std::string& line) {
    if (voice.notice) voice.notice(line);
  }

  template <typename Message>
  void Send(PeerId to, const Message& message, uint64_t request_id = 0) {
    Frame frame = EncodeMessage(message);
    frame.header.sender = kSchedulerPeer.value;
    frame.header.view = members ? members->view().view.value : 0;
    frame.header.request_id = request_id;
    output.frames.push_back({to, std::move(frame)});
  }

  // Decodes and dispatches; what breaks a rule costs its sender a line in the log.
  template <typename Message>
  void Handle(PeerId from, const Frame& frame) {
    Message message;
    if (const Status status = DecodeMessage(frame, &message); !status.ok()) {
      LOG(WARNING) << "dropped a frame of " << NameOf(from) << ": " << status.message();
      return;
    }
    On(from, message, frame);
  }

  // False when the frame is none of these messages.
  template <typename... Messages>
  bool Dispatch(PeerId from, const Frame& frame) {
    const auto kind = static_cast<MessageKind>(frame.header.kind);
    return ((kind == Messages::kKind && (Handle<Messages>(from, frame), true)) || ...);
  }

  bool Knows(PeerId peer) const {
    if (members) return members->Has(peer);
    return std::ranges::count(rendezvous.peers(), peer) > 0;
  }
  std::string NameOf(PeerId peer) const {
    if (members && members->Has(peer)) return members->NameOf(peer);
    return Knows(peer) ? rendezvous.NameOf(peer) : "peer " + std::to_string(peer.value);
  }

  void On(PeerId from, const JoinRequest& message, const Frame& frame);
  void On(PeerId from, const Heartbeat& message, const Frame& frame);
  void On(PeerId from, const CommandDone& message, const Frame& frame);
  void On(PeerId from, const StopRequest& message, const Frame& frame);
  void On(PeerId from, const Abort& message, const Frame& frame);
  void On(PeerId from, const KvPut& message, const Frame& frame);
  void On(PeerId from, const KvGet& message, const Frame& frame);
  void On(PeerId from, const StatusRequest& message, const Frame& frame);

  // Whether one who finds every place taken is told so only later.
  bool StandsBy(PeerId peer, const JoinRequest& request);
  void Form();
  void MakeCoordinator();
  // Goes on where another process of the scheduler was.
  void TakeOver();
  // Leaves on disk what that needs, where it has changed.
  void KeepState();
  void ForgetState();  // The job is over: nobody goes on from here.
  void EnterView(View view);
  void Lose(const std::vector<PeerId>& lost);
  // Others that hold the rows of `lost` take over. False where the job has to go back.
  bool Promote(const std::vector<PeerId>& lost);
  // Says of those who wait for a place that they went silent.
  void TickJoined();
  // Goes on with the cluster that is complete again.
  void Reform();
  void TickGathering();
  void TickRecovery();
  void TickRunning();
  void Report();
  void ForgiveOwnStandstill(TimeMs at);
  void Stop(const std::string& reason);
  // Tells everyone who came, a few times, and ends.
  void Leave(int status, const std::string& reason);
  void SayFarewell();

  const SchedulerOptions options;
  const Job& job;
  const ProgressListener voice;
  FileSystem& files;
  Rendezvous rendezvous;
  Recovery recovery;
  std::map<PeerId, TimeMs> standing_by;  // Since when.
  CommandTracker tracker;
  CheckpointCatalog checkpoints;
  std::optional<FoundCheckpoint> start;
  std::optional<SchedulerState> before;  // Of another process, until it is taken over.
  bool state_changed = false;            // Beside the coordinator's.
  bool state_trouble = false;            // It could not be written, and that was said.
  std::unique_ptr<RunReport> report;
  std::optional<Membership> members;
  std::optional<JobCoordinator> coordinator;
  KeyValueStore store;

  Output output;
  TimeMs now = 0;
  std::optional<TimeMs> began;  // The first tick.
  TimeMs noticed_at = 0, reported_at = 0, progress_noticed_at = 0;
  WaitNotices waits;

  int farewells_left = 0;
  bool stopping = false;
  bool leaving = false;
  bool done = false;
  int exit_status = 0;
  std::string exit_reason;
};

void SchedulerNode::Impl::On(PeerId from, const JoinRequest& message, const Frame&) {
  const bool known = rendezvous.Has(from);
  if (std::optional<JoinRefused> refusal = rendezvous.Admit(from, message, now)) {
    if (StandsBy(from, message)) return;
    Notice("refused " + message.host + ": " + refusal->message);
    return Send(from, *refusal);
  }
  standing_by.erase(from);
  if (members && members->Has(from)) {
    members->Heard(from, now);
    return Send(from, members->view());
  }
  if (members) {  // It takes the place of a lost one, if the job stands for that with the next
                  // tick.
    if (!known && !recovery.under_way()) {
      Notice(rendezvous.NameOf(from) + " has joined; it holds no rows yet");
    }
    return;
  }
  if (rendezvous.complete()) Form();
}

// A process that is started in the place of one that died may come before the death is noticed.
bool SchedulerNode::Impl::StandsBy(PeerId peer, const JoinRequest& request) {
  if (!members || !rendezvous.IsOneTooMany(request)) return false;
  const TimeMs patience = job.cluster.dead_after_ms + 2 * TimeMs{job.cluster.heartbeat_ms};
  std::erase_if(standing_by, [&](const auto& other) { return now - other.second > 2 * patience; });
  if (standing_by.size() >= kStandingByMax && !standing_by.contains(peer)) return false;
  return now - standing_by.try_emplace(peer, now).first->second <= patience;
}

void SchedulerNode::Impl::Form() {
  members.emplace(job.cluster.dead_after_ms);
  View view = rendezvous.FormView(kFirstView);
  PlaceBackups(&view, job.cluster.replicas);
  EnterView(std::move(view));
  Notice("the cluster is complete: " + std::to_string(options.num_servers) + " server(s), " +
         std::to_string(options.num_workers) + " worker(s)");
  if (CopiesShareMachine(members->view())) {
    Notice(
        "rows and copies of them are on one machine: they survive the loss of a process, not of "
        "the machine");
  }
  MakeCoordinator();
  coordinator->Begin(std::move(start), now);
}

void SchedulerNode::Impl::MakeCoordinator() {
  reported_at = progress_noticed_at = noticed_at = now;
  const auto notice = [this](const std::string& line) { Notice(line); };
  const auto warn = [this](const std::string& line) { voice.Warn(line); };
  const JobCoordinator::Parts parts{*members, tracker, checkpoints, *report, files, notice, warn};
  coordinator.emplace(options.job, options.out, parts);
}

// The members have gone on meanwhile; a view of its own makes them deaf to whoever was scheduler
// before. What they were told to do they are told again, under the same numbers.
void SchedulerNode::Impl::TakeOver() {
  const SchedulerState state = *std::exchange(before, std::nullopt);
  rendezvous.Restore(state.view, state.hosts, now);
  tracker.ContinueFrom(state.last_ids);
  store.Restore(state.entries);
  members.emplace(job.cluster.dead_after_ms);
  View view = state.view;
  ++view.view.value;
  view.shards = EvenShards(job.cluster.shards, view.servers.size());
  EnterView(std::move(view));
  MakeCoordinator();
  Notice("the scheduler is back at step " + std::to_string(state.job.plan.position.clock) +
         "; the members of view " + std::to_string(state.view.view.value) + " go on");
  if (coordinator->TakeOver(state.job, now)) return;
  Reform();
}

void SchedulerNode::Impl::ForgetState() {
  const Status removed = files.RemoveAll(SchedulerStatePath(options.out));
  if (!removed.ok()) Notice(removed.message());
}

void SchedulerNode::Impl::KeepState() {
  const bool changed = coordinator->TakeChanged();
  if (!std::exchange(state_changed, false) && !changed) return;
  SchedulerState state;
  state.job_digest = JobDigest(job);
  state.view = members->view();
  for (const PeerId peer : members->all()) state.hosts[peer] = members->HostOf(peer);
  state.last_ids = tracker.last_ids();
  state.entries = store.entries();
  state.job = coordinator->state(now);
  const Status written = WriteSchedulerState(files, options.out, state);
  if (!written.ok() && !state_trouble) {
    Notice(
        "should the scheduler die now, the job would have to begin from its newest checkpoint, "
        "for its state is not written: " +
        written.message());
  }
  state_trouble = !written.ok();
}

void SchedulerNode::Impl::EnterView(View view) {
  std::map<PeerId, std::string> hosts;
  for (const PeerId peer : rendezvous.peers()) hosts[peer] = rendezvous.HostOf(peer);
  members->Enter(std::move(view), hosts, now);
  state_changed = true;
  for (const PeerId peer : members->all()) {
    LOG(INFO) << "view " << members->view().view.value << ": " << members->NameOf(peer);
    Send(peer, members->view());
  }
}

bool SchedulerNode::Impl::Promote(const std::vector<PeerId>& lost) {
  if (recovery.under_way()) return false;
  std::optional<ViewAfterLoss> after = WithoutLost(members->view(), lost);
  if (!after) return false;
  std::string text;
  for (const PeerId peer : lost) {
    const TimeMs silent = members->SilentFor(peer, now);
    text += (text.empty() ? "" : "; ") + members->NameOf(peer) +
            " is lost: nothing was heard of it for " + TenthsOf(silent);
    report->Lost(now, members->NameOf(peer), silent);
    rendezvous.Vacate(peer);
  }
  for (const Promotion& promotion : after->promotions) {
    const std::string& to = members->NameOf(promotion.to.peer);
    text += "; " + to + " goes on with group " + std::to_string(promotion.group.value);
    report->Promoted(now, promotion.group.value, members->NameOf(promotion.from.peer), to);
  }
  EnterView(std::move(after->view));
  coordinator->ServersLost(lost.size(), now);
  Notice(text + "; no step is lost");
  for (const std::string& line : MissingCopies(members->view(), job.cluster.replicas)) Notice(line);
  return true;
}

void SchedulerNode::Impl::TickJoined() {
  for (const PeerId peer : rendezvous.peers()) {
    if (members->Has(peer) || rendezvous.SilentFor(peer, now) <= job.cluster.dead_after_ms)
      continue;
    Notice(rendezvous.NameOf(peer) + " came to take a place and went silent again");
    rendezvous.Vacate(peer);
  }
}

void SchedulerNode::Impl::Lose(const std::vector<PeerId>& lost) {
  if (Promote(lost)) return;
  for (const PeerId peer : lost) {
    const std::string& name = members->NameOf(peer);
    const TimeMs silent = members->SilentFor(peer, now);
    rendezvous.Vacate(peer);
    recovery.Lost(name, now);
    report->Lost(now, name, silent);
    members->Release(peer);
    Notice(name + " is lost: nothing was heard of it for " + TenthsOf(silent) +
           ". The job stands until another process takes its place, for up to " +
           SecondsOf(TimeMs{1000} * job.cluster.replace_after_s) + "; then it goes on from " +
           coordinator->PointOfReturn());
  }
  coordinator->Suspend(now);
}

void SchedulerNode::Impl::Reform() {
  const Status fits =
      ValidateMembers(job, rendezvous.Count(Role::kServer), rendezvous.Count(Role::kWorker));
  if (!fits.ok()) {
    return Leave(3, recovery.names() +
                        " lost, and the job does not fit those that are left: " + fits.message());
  }
  // Another process of the scheduler may find a free place, and nobody who has to wait for it.
  View view = members->view();
  if (rendezvous.complete()) {
    view = rendezvous.FormView({members->view().view.value});
    PlaceBackups(&view, job.cluster.replicas);
  }
  ++view.view.value;
  view.restarts = members->view().restarts + 1;
  EnterView(std::move(view));
  coordinator->GoBack({recovery.num_lost(), recovery.under_way() ? recovery.since() : now}, now);
  recovery.Done();
}

void SchedulerNode::Impl::On(PeerId from, const Heartbeat& message, const Frame&) {
  if (!members || !members->Has(from)) {
    // Of a scheduler before this one, or given up while it stood still or could not be reached.
    return Send(from, Abort{3,
                            "the job goes on without this process: the scheduler does not know "
                            "it, or took it for lost"});
  }
  rendezvous.Heard(from, now);
  if (recovery.under_way() && rendezvous.Return(from, now)) {
    Notice(members->NameOf(from) + " is heard again and has its place back");
  }
  members->OnHeartbeat(from, message);
  if (message.view == members->view().view) coordinator->OnProgress(from, message.clock);
  Send(from, HeartbeatAck{members->view().view});
  if (message.view < members->view().view) Send(from, members->view());
}

void SchedulerNode::Impl::On(PeerId from, const CommandDone& message, const Frame&) {
  if (!members || !members->Has(from)) return;
  const std::optional<Command> command = tracker.TakeAnswered(from, message.id);
  if (command) coordinator->OnAnswer(from, *command, message, now);
}

void SchedulerNode::Impl::On(PeerId from, const StopRequest& message, const Frame&) {
  if (Knows(from)) Stop(NameOf(from) + " was told to stop: " + message.reason);
}

void SchedulerNode::Impl::On(PeerId from, const Abort& message, const Frame&) {
  if (Knows(from)) Leave(message.exit_status, NameOf(from) + ": " + message.message);
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

void SchedulerNode::Impl::On(PeerId from, const StatusRequest&, const Frame& frame) {
  StatusReply status;
  status.job = job.name;
  if (members) {
    const std::vector<CommandTracker::Waiting> waiting = tracker.waiting();
    status.state = waiting.empty() ? "between two commands" : CommandKindName(waiting[0].command);
    if (recovery.under_way()) {
      status.state = recovery.names() + " lost; waiting for " + rendezvous.Missing();
    }
    for (const auto& missing : MissingCopies(members->view(), job.cluster.replicas)) {
      status.state += "; " + missing;
    }
    members->AddTo(&status, now);
  } else {
    status.state = "waiting for " + rendezvous.Missing() + "; here: " + rendezvous.Present();
  }
  Send(from, status, frame.header.request_id);
}

void SchedulerNode::Impl::TickGathering() {
  for (const std::string& gone : rendezvous.Expire(now)) {
    Notice(gone + " went silent before the cluster was complete; its place is free again");
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
  recovery.under_way() ? TickRecovery() : TickJoined();
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
  if (const std::vector<PeerId> lost = members->Lost(now); !lost.empty()) Lose(lost);
  KeepState();
  for (const CommandTracker::Due& due : tracker.TakeDue(now)) Send(due.to, due.command);
  if (now - noticed_at >= kNoticeEveryMs) {
    noticed_at = now;
    for (const std::string& line : waits.Lines(tracker, *members, now)) Notice(line);
  }
  Report();
}

void SchedulerNode::Impl::TickRecovery() {
  for (const std::string& gone : rendezvous.Expire(now)) {
    Notice(gone + " came to take a place and went silent again");
  }
  switch (recovery.Look(rendezvous, now)) {
    case Recovery::Next::kForm:
      return Reform();
    case Recovery::Next::kGiveUp:
      return Leave(3, recovery.names() + " lost, no other process has joined for " +
                          SecondsOf(now - recovery.since()) +
                          ", and the job cannot go on without. It goes on from " +
                          coordinator->PointOfReturn() + " when it is started again");
    case Recovery::Next::kWait:
      break;
  }
  if (now - noticed_at < kNoticeEveryMs) return;
  noticed_at = now;
  Notice(recovery.names() + " lost; waiting for " + rendezvous.Missing() + " for " +
         SecondsOf(now - recovery.since()));
}

void SchedulerNode::Impl::Report() {
  if (const std::optional<std::string> trouble = report->TakeTrouble()) {
    Notice("metrics.jsonl is not written any more: " + *trouble);
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
  Result<std::optional<SchedulerState>> before = ReadSchedulerState(files, options.out);
  if (!before.ok()) {
    impl->Notice("the job goes on from its newest checkpoint, if there is one: " +
                 before.status().message());
  } else if (*before && (*before)->job_digest == JobDigest(impl->job) &&
             options.resume != Resume::kNever) {
    impl->before = *std::move(before);
  }
  for (const auto& line : WarningsOf(impl->job, options.num_workers)) impl->voice.Warn(line);
  for (const std::string& refused : impl->checkpoints.refused()) {
    impl->Notice("refused the checkpoint " + refused);
  }
  const Status made = files.MakeDirectories(JoinPath(options.out, "checkpoint"));
  if (!made.ok()) {
    return Status(Code::kInvalidArgument,
                  "--out=" + options.out + " cannot be written to: " + made.message());
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
                     StatusRequest>(from, frame)) {
    LOG(WARNING) << "dropped a frame of kind " << MessageKindName(kind) << " from "
                 << impl.NameOf(from) << ": it is not the scheduler's";
  }
}

void SchedulerNode::OnTick(TimeMs now) {
  Impl& impl = *impl_;
  if (impl.done) return;
  if (!impl.began) {
    impl.began = impl.now = impl.noticed_at = now;
  }
  impl.ForgiveOwnStandstill(now);
  impl.now = now;
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
