// Forming views: the first one, and those after losses, scaling, or a scheduler that came back.
#include <glog/logging.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "common/platform/failpoint.h"
#include "scheduler/scheduler_inside.h"

namespace hdps {
namespace {

// A view, and one that is wanted, that this job can have.
Status StateFits(const Job& job, const SchedulerState& state) {
  const View& view = state.view;
  if (view.shards.num_shards() != job.cluster.shards) {
    return Status(Code::kCorruption, "scheduler.state has " +
                                         std::to_string(view.shards.num_shards()) +
                                         " shards, the job " + std::to_string(job.cluster.shards));
  }
  HDPS_RETURN_IF_ERROR(ValidateMembers(job, static_cast<uint32_t>(view.servers.size()),
                                       static_cast<uint32_t>(view.workers.size())));
  if (state.wanted_servers == 0) return {};
  return ValidateMembers(job, state.wanted_servers, state.wanted_workers);
}

}  // namespace

// A process that is started in the place of one that died may come before the death is noticed,
// also before the cluster is complete.
bool SchedulerNode::Impl::StandsBy(PeerId peer, const JoinRequest& request) {
  if (!rendezvous.IsOneTooMany(request)) return false;
  // In the end it is told that the job is done: nobody's place is given away any more.
  const TimeMs patience = coordinator && coordinator->ending()
                              ? std::numeric_limits<TimeMs>::max() / 4
                              : job.cluster.dead_after_ms + 2 * TimeMs{job.cluster.heartbeat_ms};
  std::erase_if(standing_by, [&](const auto& other) { return now - other.second > 2 * patience; });
  if (standing_by.size() >= kStandingByMax && !standing_by.contains(peer)) return false;
  return now - standing_by.try_emplace(peer, now).first->second <= patience;
}

void SchedulerNode::Impl::Form() {
  members.emplace(job.cluster.dead_after_ms);
  View view = rendezvous.FormView(kFirstView);
  view.placed = kFirstView;
  PlaceGroups(&view, view.servers, job.cluster.replicas);
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
  const auto enter = [this](View view) { EnterView(std::move(view)); };
  JobCoordinator::Parts parts{*members, tracker, checkpoints, *report, files,
                              notice,   warn,    enter,       {}};
  if (options.members_return) {
    parts.give_up = [this](PeerId peer, const std::string& how) { GiveUp(peer, how); };
  }
  coordinator.emplace(options.job, options.out, parts);
}

void SchedulerNode::Impl::FindState() {
  Result<std::optional<SchedulerState>> found = ReadSchedulerState(files, options.out);
  Status usable = found.status();
  if (found.ok()) {
    if (!*found || options.resume == Resume::kNever) return;
    const SchedulerState& state = **found;
    if (state.job_digest != job_digest || state.num_servers != options.num_servers ||
        state.num_workers != options.num_workers) {
      return;
    }
    usable = StateFits(job, state);
  }
  if (usable.ok()) {
    before = *std::move(found);
  } else {
    Notice("the job goes on from its newest checkpoint, if there is one: " + usable.message());
  }
}

// The members have gone on meanwhile; a view of its own makes them deaf to whoever was scheduler
// before. What they were told to do they are told again, under the same numbers.
void SchedulerNode::Impl::TakeOver() {
  SchedulerState state = *std::exchange(before, std::nullopt);
  if (state.boot != options.boot) {
    // The machine has been down. The view is the last one, but of what came in it the latest may be
    // missing: nobody hears an old number again, and the job goes back to its checkpoint.
    state.job.phase = JobPhase::kSuspended;
    for (auto& [member, id] : state.last_ids) id += kIdsSkipped;
  }
  rendezvous.Restore(state.view, state.processes, now);
  tracker.ContinueFrom(state.last_ids);
  store.Restore(state.entries);
  members.emplace(job.cluster.dead_after_ms);
  View view = state.view;
  ++view.view.value;
  EnterView(std::move(view));
  MakeCoordinator();
  Notice("the scheduler is back at step " + std::to_string(state.job.plan.position.clock) +
         "; the members of view " + std::to_string(state.view.view.value) + " go on");
  HDPS_FAILPOINT("scheduler.state.taken_over");
  if (!coordinator->TakeOver(state.job, now)) Reform();
  if (state.wanted_servers > 0 && state.wanted_workers > 0) {
    scaling.Continue(state.wanted_servers, state.wanted_workers, rendezvous);
  }
  SeekMembers();
}

void SchedulerNode::Impl::ForgetState() {
  const Status removed = files.RemoveAll(SchedulerStatePath(options.out));
  if (!removed.ok()) Notice(removed.message());
  HDPS_FAILPOINT("scheduler.state.forgotten");
}

void SchedulerNode::Impl::KeepState() {
  if (state_trouble && now - state_tried_at < kStateAgainMs) return;
  const bool changed = coordinator->TakeChanged();
  const bool is_of_view = std::exchange(state_changed, false);
  if (!is_of_view && !changed) return;
  SchedulerState state;
  state.job_digest = job_digest;
  state.num_servers = options.num_servers;
  state.num_workers = options.num_workers;
  state.view = members->view();
  for (const PeerId peer : members->all()) state.processes[peer] = members->ProcessOf(peer);
  if (scaling.under_way()) {
    state.wanted_servers = scaling.servers();
    state.wanted_workers = scaling.workers();
  }
  state.last_ids = tracker.last_ids();
  state.entries = store.entries();
  state.job = coordinator->state(now);
  state.boot = options.boot;
  const bool sync = is_of_view || state_trouble || options.boot.empty();
  const Status written = WriteSchedulerState(files, options.out, state,
                                             sync ? Survives::kMachine : Survives::kProcess);
  state_tried_at = now;
  if (!written.ok()) {
    state_changed = true;  // It is tried again.
    // The old one would have others go on from where the job no longer is.
    const Status removed = files.RemoveAll(SchedulerStatePath(options.out));
    if (!state_trouble) {
      Notice(
          "should the scheduler die now, the job would have to begin from its newest "
          "checkpoint, for its state is not written: " +
          written.message() +
          (removed.ok() ? "" : "; nor is the old one removed: " + removed.message()));
    }
  } else if (state_trouble) {
    Notice("the scheduler's state is written again");
  }
  state_trouble = !written.ok();
}

void SchedulerNode::Impl::EnterView(View view) {
  std::map<PeerId, MemberProcess> processes;
  for (const PeerId peer : rendezvous.peers()) processes[peer] = rendezvous.ProcessOf(peer);
  members->Enter(std::move(view), processes, now);
  // The silence of members that are new to it is counted from here, so is the patience with those
  // who stand by for their places.
  for (auto& [peer, since] : standing_by) since = now;
  state_changed = true;
  HDPS_FAILPOINT("scheduler.view.formed");
  for (const PeerId peer : members->all()) {
    LOG(INFO) << "view " << members->view().view.value << ": " << members->NameOf(peer);
    Send(peer, members->view());
  }
  HDPS_FAILPOINT("scheduler.view.sent");
}

bool SchedulerNode::Impl::Promote(const std::vector<PeerId>& lost) {
  if (recovery.under_way() || coordinator->moving()) return false;
  std::optional<ViewAfterLoss> after = WithoutLost(members->view(), lost);
  if (!after) return false;
  std::string text;
  for (const PeerId peer : lost) {
    const TimeMs silent = members->SilentFor(peer, now);
    text += (text.empty() ? "" : "; ") + members->NameOf(peer) + " is lost: " + HowLost(peer);
    report->Lost(now, members->NameOf(peer), silent);
    rendezvous.Vacate(peer);
  }
  for (const Promotion& promotion : after->promotions) {
    const std::string& to = members->NameOf(promotion.to.peer);
    text += "; " + to + " goes on with group " + std::to_string(promotion.group.value);
    report->Promoted(now, promotion.group.value, members->NameOf(promotion.from.peer), to);
  }
  HDPS_FAILPOINT("scheduler.member.lost");
  EnterView(std::move(after->view));
  coordinator->ServersLost(lost.size(), now);
  Notice(text + "; no step is lost");
  for (const std::string& line : MissingCopies(members->view(), job.cluster.replicas)) Notice(line);
  SeekMembers();
  return true;
}

void SchedulerNode::Impl::SeekMembers() {
  const View& view = members->view();
  const auto servers = static_cast<uint32_t>(view.servers.size());
  const auto workers = static_cast<uint32_t>(view.workers.size());
  const bool copies_missing = !MissingCopies(view, job.cluster.replicas).empty();
  if (copies_missing && !copies_missing_since) copies_missing_since = now;
  if (!copies_missing) copies_missing_since.reset();
  if (scaling.under_way()) {
    scaling.Continue(scaling.servers(), scaling.workers(), rendezvous);
    const bool as_wanted = scaling.servers() == servers && scaling.workers() == workers;
    if (as_wanted && !copies_missing) scaling.Done();
  } else if (copies_missing && view.Holders().size() < servers) {
    scaling.Continue(servers, workers, rendezvous);
  }
  state_changed = true;
}

bool SchedulerNode::Impl::CopiesMayBeAtOthers() const {
  if (!copies_missing_since) return false;
  if (now - *copies_missing_since < TimeMs{1000} * job.cluster.replace_after_s) return false;
  return WithThoseLeft().backups.size() > members->view().backups.size();
}

View SchedulerNode::Impl::WithThoseLeft() const {
  View view = members->view();
  std::vector<Member> left = view.Holders();
  std::ranges::sort(left, {}, &Member::rank);
  PlaceGroups(&view, left, job.cluster.replicas);
  return view;
}

std::string SchedulerNode::Impl::HowLost(PeerId peer) const {
  if (const std::string& how = members->given_up(peer); !how.empty()) return how;
  const TimeMs silent = members->SilentFor(peer, now);
  if (silent <= job.cluster.dead_after_ms && members->deaf(peer)) {
    return "it is heard, but has heard nothing of the scheduler for more than " +
           SecondsOf(job.cluster.dead_after_ms);
  }
  if (silent <= job.cluster.dead_after_ms) return "its process has ended";
  return "nothing was heard of it for " + TenthsOf(silent);
}

void SchedulerNode::Impl::Lose(const std::vector<PeerId>& lost) {
  if (Promote(lost)) return;
  for (const PeerId peer : lost) {
    const std::string& name = members->NameOf(peer);
    const TimeMs silent = members->SilentFor(peer, now);
    rendezvous.Vacate(peer);
    recovery.Lost(name, HowLost(peer), now);
    report->Lost(now, name, silent);
    members->Release(peer);
    Notice(name + " is lost: " + HowLost(peer) +
           ". The job stands until another process takes its place, for up to " +
           SecondsOf(TimeMs{1000} * job.cluster.replace_after_s) + "; then it goes on from " +
           coordinator->PointOfReturn());
  }
  HDPS_FAILPOINT("scheduler.member.lost");
  // The lost ones come first; what was asked for goes on behind them. Newcomers that are here take
  // their places.
  if (scaling.under_way()) {
    const View& view = members->view();
    rendezvous.OpenPlaces(Role::kServer, static_cast<uint32_t>(view.Holders().size()));
    rendezvous.OpenPlaces(Role::kWorker, static_cast<uint32_t>(view.workers.size()));
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
    PlaceGroups(&view, view.servers, job.cluster.replicas);
  }
  ++view.view.value;
  view.restarts = members->view().restarts + 1;
  view.placed = view.view;
  EnterView(std::move(view));
  coordinator->GoBack({recovery.num_lost(), recovery.under_way() ? recovery.since() : now}, now);
  recovery.Done();
  copies_missing_since.reset();
  SeekMembers();
  HDPS_FAILPOINT("scheduler.job.went_back");
}

void SchedulerNode::Impl::On(PeerId from, const ScaleRequest& message, const Frame& frame) {
  // A question that was asked again is answered alike.
  if (from == scale_asked_by) return Send(from, scale_reply, frame.header.request_id);
  ScaleReply reply;
  if (!coordinator || recovery.under_way()) {
    reply = {Code::kUnavailable, "the cluster is not complete; ask again when it is"};
  } else {
    const Result<std::string> accepted = scaling.Accept(job, message, rendezvous);
    reply = {accepted.status().code(), accepted.ok() ? *accepted : accepted.status().message()};
    if (accepted.ok()) Notice(*accepted);
    state_changed = true;
    scale_asked_by = from;
    scale_asked_at = now;
    scale_reply = reply;
  }
  Send(from, reply, frame.header.request_id);
}

void SchedulerNode::Impl::TickRecovery() {
  for (const std::string& gone : rendezvous.Expire(now)) {
    NoticeOutside(gone + " came to take a place and went silent again");
  }
  switch (recovery.Look(rendezvous, now)) {
    case Recovery::Next::kForm:
      return Reform();
    case Recovery::Next::kGiveUp:
      return Leave(3, recovery.names() + " lost (" + recovery.first_cause() +
                          "), no other process has joined for " +
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

void SchedulerNode::Impl::TickScaling() {
  for (const std::string& gone : rendezvous.Expire(now)) {
    NoticeOutside(gone + " came to join the job and went silent again");
  }
  const bool ready = scaling.ready(rendezvous);
  if (!ready && !CopiesMayBeAtOthers()) {
    if (coordinator->quiet()) coordinator->GoOn(now);
    return;
  }
  if (!coordinator->quiet()) return coordinator->AskForQuiet();
  View view = ready ? ScaledView() : WithThoseLeft();
  view.view = {members->view().view.value + 1};
  view.restarts = members->view().restarts;
  view.placed = view.view;
  copies_missing_since.reset();
  coordinator->ChangeMembers(std::move(view), now);
}

View SchedulerNode::Impl::ScaledView() {
  for (const Role role : {Role::kServer, Role::kWorker}) {
    const uint32_t count = role == Role::kServer ? scaling.servers() : scaling.workers();
    for (const PeerId peer : rendezvous.Dismiss(role, count)) dismissed.insert(peer);
  }
  scaling.Done();
  state_changed = true;
  View view = rendezvous.FormView(members->view().view, &members->view().shards);
  PlaceGroups(&view, view.servers, job.cluster.replicas);
  return view;
}

}  // namespace hdps
