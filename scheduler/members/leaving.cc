// Lets members go that were told to leave, as soon as nothing is lost with them.
#include <utility>

#include "common/base/exit_status.h"
#include "common/protocol/membership_messages.h"
#include "scheduler/members/member_changes.h"

namespace hdps {

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

}  // namespace hdps
