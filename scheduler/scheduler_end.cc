// Ends a job, and finishes the copies of its checkpoints.
#include <string>

#include "scheduler/plan/init_source.h"
#include "scheduler/scheduler_node.h"
#include "scheduler/state/run_start.h"

namespace hdps {

void SchedulerNode::TickCopies() {
  copies_.OnTick(checkpoints_.saves(), now_);
  checkpoints_.Hold(copies_.held());
  for (const std::string& warning : copies_.TakeWarnings()) notices_.Warn(warning);
  if (!end_.done()) return;
  const std::string progress = copies_.awaited() ? copies_.Progress() : "";
  if (progress != copy_progress_) notices_.ShowProgress(progress);
  copy_progress_ = progress;
  if (!notices_.shows_progress()) notices_.SayWait(progress, now_);
  if (!copies_.awaited()) notices_.Say(copies_.Done());
}

void SchedulerNode::Finish() {
  notices_.ShowProgress("");
  notices_.Say(SummaryTable(coordinator_->summary(), options_.out));
  end_.Finish("the job is finished");
  for (const PeerId peer : admission_.standing_by()) outbox_.Send(peer, end_.last_word());
  for (const PeerId peer : rendezvous_.peers()) {
    if (!changes_.members().Has(peer)) outbox_.Send(peer, end_.last_word());
  }
  notices_.Say(kept_state_.Forget());
  RemoveUnfinished(checkpoints_,
                   notices_);  // Left by a run that this one took over with its members.
  notices_.Say(RemoveFetchedInit(files_, options_.out));
  notices_.Say(copies_.Finish(now_));
  EndWatch();
}

void SchedulerNode::Fail(int exit_status, const std::string& reason) {
  if (!end_.Leave(exit_status, reason)) return;
  notices_.ShowProgress("");
  tracker_.DropAll();
  if (changes_.formed()) notices_.Say(kept_state_.Forget());
  if (const std::string lost = copies_.BreakOff(); !lost.empty()) {
    notices_.Warn(lost + "; the next run of this --out begins with them");
  }
  EndWatch();
  SendAbort();
}

void SchedulerNode::SendAbort() {
  const Abort last = end_.TakeAbort();
  for (const PeerId peer : rendezvous_.peers()) outbox_.Send(peer, last);
  for (const PeerId peer : admission_.standing_by()) outbox_.Send(peer, last);
}

}  // namespace hdps
