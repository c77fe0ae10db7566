// Decides who is lost, who is awaited, and which view comes next.
#include "scheduler/members/member_changes.h"

#include <algorithm>
#include <map>
#include <utility>

#include "common/base/counted.h"
#include "common/base/exit_status.h"
#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/protocol/membership_messages.h"
#include "scheduler/members/cut_links.h"
#include "scheduler/members/forming.h"
#include "scheduler/members/replica_plan.h"
#include "scheduler/members/time_text.h"
#include "scheduler/members/validate_cluster.h"

namespace hdps {

MemberChanges::MemberChanges(std::shared_ptr<const Job> job, Rendezvous& rendezvous,
                             bool fewer_at_once)
    : job_(std::move(job)),
      fewer_at_once_(fewer_at_once),
      rendezvous_(rendezvous),
      recovery_(job_->cluster) {}

TimeMs MemberChanges::replace_after_ms() const {
  return TimeMs{1000} * job_->cluster.replace_after_s;
}

bool MemberChanges::Knows(PeerId peer) const {
  return formed() ? members_->Has(peer) : rendezvous_.Has(peer);
}

std::string MemberChanges::NameOf(PeerId peer) const {
  if (!Knows(peer)) return "one who is no member";
  return formed() ? members_->NameOf(peer) : rendezvous_.NameOf(peer);
}

View MemberChanges::First() const { return FirstView(rendezvous_, job_->cluster.replicas); }

std::vector<std::string> MemberChanges::Complete() const {
  const View& view = members_->view();
  std::vector<std::string> lines = {
      "the cluster is complete: " + Counted(view.servers.size(), "server") + ", " +
      Counted(view.workers.size(), "worker")};
  if (CopiesShareMachine(view)) {
    lines.push_back(
        "rows and copies of them are on one machine: they survive the loss of a process, not of "
        "the machine");
  }
  return lines;
}

void MemberChanges::Enter(View view, TimeMs now) {
  std::map<PeerId, MemberProcess> processes;
  for (const PeerId peer : rendezvous_.peers()) processes[peer] = rendezvous_.ProcessOf(peer);
  if (!formed()) members_.emplace(job_->cluster.dead_after_ms);
  rendezvous_.Settle(view);
  members_->Enter(std::move(view), processes, now);
}

std::optional<Abort> MemberChanges::Refusal(PeerId peer) const {
  const bool has = formed() && members_->Has(peer);
  if (!has && scaling_.dismissed(peer)) {
    return Abort{kExitDone, "it has left the job, which goes on with others"};
  }
  if (!has) {  // From a former scheduler, or given up while it was not reachable.
    return Abort{kExitFailed,
                 "the job goes on without this process: the scheduler does not know it, or took it "
                 "for lost"};
  }
  const std::string& how = members_->given_up(peer);
  if (how.empty()) return std::nullopt;
  return Abort{kExitFailed, "the job goes on without this process: " + how};
}

MemberChanges::Heard MemberChanges::OnHeartbeat(PeerId peer, const Heartbeat& heartbeat,
                                                TimeMs now) {
  Heard heard;
  rendezvous_.Heard(peer, now);
  const std::string before = members_->trouble(peer);
  members_->OnHeartbeat(peer, heartbeat, now);
  const std::string& name = members_->NameOf(peer);
  const std::string& trouble = members_->trouble(peer);
  if (!trouble.empty() && trouble != before) heard.warning = name + " waits: " + trouble;
  if (trouble.empty() && !before.empty()) heard.notices.push_back(name + " goes on");
  if (recovery_.under_way() && !members_->deaf(peer) && rendezvous_.Return(peer, now)) {
    heard.notices.push_back(name + " is heard again and has its place back");
  }
  return heard;
}

std::string MemberChanges::Joined(PeerId peer) const {
  const bool holds_copies = job_->cluster.replicas > 0 && !recovery_.under_way() &&
                            rendezvous_.RoleOf(peer) == Role::kServer;
  return holds_copies ? rendezvous_.NameOf(peer) + " has joined; it holds no rows yet" : "";
}

MemberChanges::GivenUp MemberChanges::GiveUp(PeerId peer, const std::string& how,
                                             int mistake_status, const JobStand& stand) {
  const std::string name = NameOf(peer);
  const std::string cause = name + ": " + how;
  if (!formed()) {
    const Role role = rendezvous_.RoleOf(peer);
    const std::string place = std::string(RoleName(role)) + " " + std::to_string(peer.value);
    rendezvous_.Vacate(peer);
    return {name + " cannot go on: " + how + "; its place is free again",
            failures_.AddBeforeFirstView({role, place, cause, mistake_status},
                                         rendezvous_.Places(role))};
  }
  // A member reports its failure more than once; a report after its end changes nothing.
  if (members_->released(peer) || !members_->given_up(peer).empty()) return {};
  members_->GiveUp(peer, how);
  const bool worker = members_->WorkerRank(peer).has_value();
  const size_t all = worker ? members_->workers().size() : members_->holders().size();
  return {"", failures_.Add({worker ? Role::kWorker : Role::kServer, members_->PlaceOf(peer), cause,
                             mistake_status},
                            stand.clock, all, stand.point_of_return)};
}

std::vector<MemberChanges::CutOff> MemberChanges::FindCutOff() const {
  std::vector<CutOff> found;
  for (const CutLink& cut :
       FindCutLinks(members_->LinkReports(), members_->servers(), job_->cluster.dead_after_ms)) {
    const std::string silent = TenthsOf(cut.for_ms);
    found.push_back(
        {cut.peer,
         cut.is_worker
             ? "it has heard none of the " + Counted(cut.links, "server") + " for " + silent
             : Counted(cut.links, "worker") + (cut.links == 1 ? " has" : " have") +
                   " heard nothing of it for " + silent +
                   ", though it beats; perhaps they cannot reach the address it listens at"});
  }
  return found;
}

std::vector<PeerId> MemberChanges::FindLost(TimeMs now) {
  std::vector<PeerId> lost = members_->Lost(now);
  for (const PeerId peer : rendezvous_.Ended()) {
    if (members_->Has(peer) && !members_->released(peer) && std::ranges::count(lost, peer) == 0) {
      lost.push_back(peer);
    }
  }
  return lost;
}

std::string MemberChanges::HowLost(PeerId peer, TimeMs now) const {
  if (const std::string& how = members_->given_up(peer); !how.empty()) return how;
  const TimeMs silent = members_->SilentFor(peer, now);
  if (silent <= job_->cluster.dead_after_ms && members_->deaf(peer)) {
    return "it is heard, but has heard nothing of the scheduler for more than " +
           SecondsOf(job_->cluster.dead_after_ms);
  }
  if (silent <= job_->cluster.dead_after_ms) return "its process has ended";
  return "nothing was heard of it for " + TenthsOf(silent);
}

AfterLoss MemberChanges::Lose(const std::vector<PeerId>& lost, const JobStand& stand, TimeMs now) {
  // While members are missing or rows are in transit, no backup has all the rows needed.
  if (!recovery_.under_way() && !stand.moving && !stand.takes_up) {
    std::optional<ViewAfterLoss> after = WithoutLost(members_->view(), lost);
    if (after) return Promote(*std::move(after), lost, now);
  }
  AfterLoss result;
  JudgeLoss(lost, stand);
  result.in_place = back_because_.empty();
  const std::vector<Member>& workers = members_->view().workers;
  const bool only_workers = std::ranges::all_of(lost, [&](PeerId peer) {
    return std::ranges::find(workers, peer, &Member::peer) != workers.end();
  });
  const bool waits_on = only_workers && lost.size() < workers.size() &&
                        job_->cluster.on_worker_loss == OnWorkerLoss::kWait;
  const std::string within = SecondsOf(replace_after_ms());
  const std::string until_replaced =
      result.in_place ? ". Another process takes up its step in place" +
                            (waits_on ? ", whenever it comes" : ", if one comes within " + within) +
                            "; the others go on as far as the mode lets them"
                      : ". The job stands until another process takes its place" +
                            (waits_on ? "" : ", for up to " + within) + "; then it goes on from " +
                            stand.point_of_return;
  for (const PeerId peer : lost) {
    const std::string& name = members_->NameOf(peer);
    const std::string how = HowLost(peer, now);
    const bool left = !members_->leaving(peer).empty();
    result.lost.push_back({name, members_->SilentFor(peer, now), how, left});
    result.notices.push_back(name + " is lost: " + how + until_replaced);
    rendezvous_.Vacate(peer);
    recovery_.Lost(name, how, left, now);
    members_->Release(peer);
  }
  // Lost members come first, also those with backups; a scaling goes on after them. New members
  // that are here take their places.
  if (scaling_.under_way()) {
    const View& view = members_->view();
    const size_t servers = fewer_at_once_ ? view.Holders().size() : view.servers.size();
    rendezvous_.OpenPlaces(Role::kServer, static_cast<uint32_t>(servers));
    rendezvous_.OpenPlaces(Role::kWorker, static_cast<uint32_t>(view.workers.size()));
  }
  return result;
}

AfterLoss MemberChanges::Promote(ViewAfterLoss after, const std::vector<PeerId>& lost, TimeMs now) {
  AfterLoss result;
  std::string text;
  for (const PeerId peer : lost) {
    const std::string& name = members_->NameOf(peer);
    const std::string how = HowLost(peer, now);
    text += (text.empty() ? "" : "; ") + name + " is lost: " + how;
    result.lost.push_back(
        {name, members_->SilentFor(peer, now), how, !members_->leaving(peer).empty()});
    rendezvous_.Vacate(peer);
  }
  for (const Promotion& promotion : after.promotions) {
    const std::string& to = members_->NameOf(promotion.to.peer);
    text += "; " + to + " goes on with group " + std::to_string(promotion.group.value);
    result.promoted.push_back({promotion.group, members_->NameOf(promotion.from.peer), to});
  }
  result.notices = MissingCopies(after.view, job_->cluster.replicas);
  result.notices.insert(result.notices.begin(), text + "; no step is lost");
  result.view = std::move(after.view);
  return result;
}

MemberStep MemberChanges::Next(const JobStand& stand, TimeMs now) {
  if (std::optional<MemberStep> step = NextOfLeaving(stand)) return *std::move(step);
  if (recovery_.under_way()) return NextOfRecovery(stand, now);
  if (stand.needs_restart) return GoBack(now);
  if (scaling_.under_way()) return NextOfScaling(stand, now);
  MemberStep step;
  if (stand.quiet) step.what = MemberStep::Do::kGoOn;
  return step;
}

MemberStep MemberChanges::NextOfRecovery(const JobStand& stand, TimeMs now) {
  std::vector<std::string> gone;
  for (const std::string& name : rendezvous_.Expire(now)) {
    gone.push_back(name + " came to take a place and went silent again");
  }
  MemberStep step;
  const TimeMs waited = now - recovery_.since();
  if (CanReplace(stand)) {
    step = Replace();
    step.gone = std::move(gone);
    return step;
  }
  switch (recovery_.Look(rendezvous_, now)) {
    case Recovery::Next::kForm:
      step = GoBack(now);
      break;
    case Recovery::Next::kGiveUp:
      step = MemberStep::End(kExitFailed,
                             recovery_.names() + " lost (" + recovery_.first_cause() +
                                 "), no other process has joined for " + SecondsOf(waited) +
                                 ", and the job cannot go on without. It goes on from " +
                                 stand.point_of_return + " when it is started again");
      break;
    case Recovery::Next::kWait:
      if (failures_.mistake() && now - recovery_.last() >= replace_after_ms()) {
        step = MemberStep::End(failures_.mistake()->exit_status, failures_.mistake()->message);
      } else {
        step.wait = recovery_.names() + " lost; waiting for " + rendezvous_.Missing() + " for " +
                    SecondsOf(waited);
      }
      break;
  }
  step.gone = std::move(gone);
  return step;
}

MemberStep MemberChanges::GoBack(TimeMs now) {
  const Status fits =
      ValidateMembers(*job_, rendezvous_.Count(Role::kServer), rendezvous_.Count(Role::kWorker));
  if (!fits.ok()) {
    return MemberStep::End(
        kExitFailed, recovery_.names() +
                         " lost, and the job does not fit those that are left: " + fits.message());
  }
  MemberStep step;
  step.what = MemberStep::Do::kGoBack;
  step.view = ViewOfRestart(members_->view(), rendezvous_, job_->cluster.replicas);
  step.num_lost = recovery_.num_failed();
  step.stood_since = recovery_.under_way() ? recovery_.since() : now;
  if (recovery_.under_way()) {
    step.because =
        in_place() ? "no process took up the step of " + recovery_.names() : back_because_;
  }
  recovery_.Done();
  failures_.Replaced();
  copies_missing_since_.reset();
  return step;
}

void MemberChanges::SeekServerForCopies(TimeMs now) {
  const View& view = members_->view();
  const auto servers = static_cast<uint32_t>(view.servers.size());
  const auto workers = static_cast<uint32_t>(view.workers.size());
  const bool copies_missing = !MissingCopies(view, job_->cluster.replicas).empty();
  if (copies_missing && !copies_missing_since_) copies_missing_since_ = now;
  if (!copies_missing) copies_missing_since_.reset();
  if (scaling_.under_way()) {
    scaling_.Continue(scaling_.servers(), scaling_.workers(), rendezvous_);
    const bool as_wanted = scaling_.servers() == servers && scaling_.workers() == workers;
    if (as_wanted && !copies_missing) scaling_.Done();
  } else if (copies_missing && view.Holders().size() < servers) {
    scaling_.Continue(servers, workers, rendezvous_);
  }
}

bool MemberChanges::CopiesMayBeAtOthers(TimeMs now) const {
  if (!copies_missing_since_ || now - *copies_missing_since_ < replace_after_ms()) return false;
  const View& view = members_->view();
  return ViewOfThoseLeft(view, job_->cluster.replicas).backups.size() > view.backups.size();
}

MemberStep MemberChanges::NextOfScaling(const JobStand& stand, TimeMs now) {
  MemberStep step;
  for (const std::string& name : rendezvous_.Expire(now)) {
    step.gone.push_back(name + " came to join the job and went silent again");
  }
  const bool ready = scaling_.ready(rendezvous_);
  if (!ready && !CopiesMayBeAtOthers(now)) {
    if (stand.quiet) step.what = MemberStep::Do::kGoOn;
    return step;
  }
  if (!stand.quiet) {
    step.what = MemberStep::Do::kAskForQuiet;
    return step;
  }
  const uint32_t replicas = job_->cluster.replicas;
  if (ready) scaling_.Dismiss(rendezvous_);
  step.what = MemberStep::Do::kChange;
  step.view = ready ? ViewOfNewNumbers(members_->view(), rendezvous_, replicas)
                    : ViewOfThoseLeft(members_->view(), replicas);
  copies_missing_since_.reset();
  return step;
}

MemberChanges::Parting MemberChanges::OnLeave(PeerId peer, const LeaveRequest& request) {
  const bool is_member = formed() && members_->Has(peer);
  if (!is_member && rendezvous_.Has(peer)) {
    const std::string name = rendezvous_.NameOf(peer);
    rendezvous_.Vacate(peer);
    return {name + " leaves: " + request.reason + "; its place is free again", false};
  }
  // A released member has ended with the job, or was let go.
  if (!is_member || members_->released(peer) || !members_->given_up(peer).empty()) return {};
  Parting parting;
  parting.goes = request.goes;
  if (members_->leaving(peer).empty()) {
    members_->Leaves(peer, request.reason.empty() ? "it was told to" : request.reason);
    parting.notice = members_->NameOf(peer) + " leaves: " + members_->leaving(peer);
  }
  return parting;
}

std::optional<MemberStep> MemberChanges::NextOfLeaving(const JobStand& stand) {
  MemberStep step;
  step.leavers = members_->leavers();
  if (step.leavers.empty()) saved_for_leavers_.reset();
  // A job that ends takes them along; rows in transit are lost with a server.
  if (step.leavers.empty() || stand.ends || stand.moving) return std::nullopt;
  const bool others_hold_rows = WithoutLost(members_->view(), step.leavers).has_value();
  if (in_place()) return std::nullopt;  // First the steps of those that are lost are taken up.
  if (recovery_.under_way() || stand.loads || others_hold_rows) {
    step.what = MemberStep::Do::kLetGo;
  } else if (!stand.quiet) {
    step.what = MemberStep::Do::kAskForQuiet;
  } else if (!stand.saved && saved_for_leavers_ != stand.clock) {
    saved_for_leavers_ = stand.clock;
    step.what = MemberStep::Do::kSave;
  } else {  // A save that has failed would fail again.
    step.what = MemberStep::Do::kLetGo;
    step.unsaved = !stand.saved;
  }
  return step;
}

Abort MemberChanges::LetGo(const std::vector<PeerId>& leavers, bool handed_over) {
  const std::string how = handed_over ? "nothing is lost with it" : "it could not hand over";
  for (const PeerId peer : leavers) {
    members_->GiveUp(peer, "it was told to leave (" + members_->leaving(peer) + "), and " + how);
  }
  saved_for_leavers_.reset();
  return {kExitFailed, "left the job as it was told to; " + how};
}

Scaling::Answer MemberChanges::OnRequest(PeerId from, const ScaleRequest& request, TimeMs now) {
  const View* const view = formed() && !recovery_.under_way() ? &members_->view() : nullptr;
  return scaling_.OnRequest(from, request, *job_, view, rendezvous_, now);
}

void MemberChanges::ContinueScaling(uint32_t servers, uint32_t workers) {
  if (servers > 0 && workers > 0) scaling_.Continue(servers, workers, rendezvous_);
}

}  // namespace hdps
