// Lets members go and others take their places, and ends this process alone when it is told to
// leave.
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
