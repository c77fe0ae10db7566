// Loses members and lets them go, has others take their places, and ends this process alone when it
// is told to leave.
#include <algorithm>
#include <utility>

#include "common/platform/failpoint.h"
#include "common/protocol/membership_messages.h"
#include "scheduler/scheduler_node.h"

namespace hdps {

void SchedulerNode::On(PeerId from, const LeaveRequest& message, uint64_t) {
  const MemberChanges::Parting parting = changes_.OnLeave(from, message);
  notices_.Say(parting.notice);
  if (parting.goes) return LetGo({from}, /*handed_over=*/false);
  if (!changes_.formed()) return;
  if (const std::optional<Abort> refusal = changes_.Refusal(from)) outbox_.Send(from, *refusal);
}

void SchedulerNode::LetGo(const std::vector<PeerId>& leavers, bool handed_over) {
  const Abort word = changes_.LetGo(leavers, handed_over);
  for (const PeerId peer : leavers) outbox_.Send(peer, word);
  Lose(leavers);
}

void SchedulerNode::GiveUp(PeerId peer, const std::string& how, int mistake_status) {
  const MemberChanges::GivenUp given_up = changes_.GiveUp(peer, how, mistake_status, Stand());
  notices_.Say(given_up.notice);
  if (given_up.end) Fail(given_up.end->exit_status, given_up.end->message);
}

void SchedulerNode::Lose(const std::vector<PeerId>& lost) {
  AfterLoss after = changes_.Lose(lost, Stand(), now_);
  report_->OnLoss(now_, after);
  const auto left = std::ranges::count(after.lost, true, &AfterLoss::Lost::left);
  coordinator_->CountLeft(static_cast<size_t>(left));
  HDPS_FAILPOINT("scheduler.member.lost");
  if (!after.view) {
    notices_.Say(after.notices);
    return after.in_place ? coordinator_->AwaitReplacements() : coordinator_->Suspend(now_);
  }
  EnterView(*std::move(after.view));
  coordinator_->ServersLost(lost.size() - static_cast<size_t>(left), now_);
  notices_.Say(after.notices);
  changes_.SeekServerForCopies(now_);
}

void SchedulerNode::Replace(MemberStep step) {
  const std::vector<PeerId> before = changes_.members().workers();
  const ProgressState told = coordinator_->progress();
  EnterView(std::move(step.view));
  coordinator_->ReplaceWorkers(before, told, {step.num_lost, step.stood_since}, now_);
  changes_.SeekServerForCopies(now_);
  HDPS_FAILPOINT("scheduler.worker.replaced");
}

void SchedulerNode::RequestLeave(const std::string& reason, TimeMs) {
  if (end_.over() || end_.stop_asked() || (coordinator_ && coordinator_->ending())) return;
  std::string what = "the cluster was not complete";
  if (kept_state_.found()) what = "the state is as a former scheduler left it";
  if (coordinator_) {
    coordinator_->StepDown();
    kept_state_.ChangedForMachine();
    const std::string trouble =
        kept_state_.Write(StateOf(changes_, tracker_, board_, coordinator_->state(now_)), now_);
    what = trouble.empty() ? "the state is written, and the members wait for another scheduler"
                           : trouble;
  }
  notices_.ShowProgress("");
  end_.StepDown("left: " + reason + "; " + what);
  if (const std::string lost = copies_.BreakOff(); !lost.empty()) {
    notices_.Warn(lost + "; the next scheduler of this --out begins with them");
  }
  EndWatch();
}

}  // namespace hdps
