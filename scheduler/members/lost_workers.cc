// Decides whether processes that take the places of lost workers take up their steps in place, or
// all members go back to a checkpoint, and why.
#include <algorithm>
#include <utility>

#include "common/job/job_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/planning/in_place.h"
#include "common/protocol/view.h"
#include "scheduler/members/forming.h"
#include "scheduler/members/member_changes.h"

namespace hdps {

std::string MemberChanges::WhyAllGoBack(const std::vector<PeerId>& lost,
                                        const JobStand& stand) const {
  const bool all_meet = StepsTakenUp(*job_) > 0;
  for (const PeerId peer : lost) {
    const std::string& place = members_->PlaceOf(peer);
    // Nobody else may have the dense layers yet.
    if (all_meet && stand.takes_up) return place + " was lost while workers took up their step";
    if (!members_->WorkerRank(peer)) {
      if (stand.takes_up) return place + " was lost while a worker took up its step";
      return place + " was lost, and no other server has all of its rows";
    }
    // A process that fails may have said what is wrong, and servers have taken it.
    if (!members_->given_up(peer).empty()) return place + " failed or was let go";
  }
  const auto is_lost = [&](PeerId peer) {
    return members_->released(peer) || std::ranges::count(lost, peer) > 0;
  };
  if (all_meet && std::ranges::all_of(members_->workers(), is_lost)) {
    return "no worker is left that has the dense layers (dense_exchange allreduce)";
  }
  if (rendezvous_.recorded() && job_->train.mode != Mode::kSync) {
    return "a recorded run has one line of steps (--record)";
  }
  return stand.why_back;
}

void MemberChanges::JudgeLoss(const std::vector<PeerId>& lost, const JobStand& stand) {
  // Losses that come together are made good together.
  if (recovery_.under_way() && !back_because_.empty()) return;
  back_because_ = WhyAllGoBack(lost, stand);
}

bool MemberChanges::CanReplace(const JobStand& stand) {
  if (!in_place() || !stand.why_back.empty()) return false;
  const size_t workers = members_->view().workers.size();
  return rendezvous_.Places(Role::kWorker) == workers && rendezvous_.FillWorkers();
}

MemberStep MemberChanges::Replace() {
  MemberStep step;
  step.what = MemberStep::Do::kReplace;
  step.view = ViewOfReplacements(members_->view(), rendezvous_);
  step.num_lost = recovery_.num_failed();
  step.stood_since = recovery_.since();
  recovery_.Done();
  failures_.Replaced();
  return step;
}

}  // namespace hdps
