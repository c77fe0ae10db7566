// Lets shards move from a busy server to others.
#include <cstdio>
#include <string>
#include <utility>

#include "scheduler/members/forming.h"
#include "scheduler/scheduler_node.h"

namespace hdps {
namespace {

// Such as "1.84".
std::string Hundredths(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f", value);
  return text;
}

}  // namespace

bool SchedulerNode::TickBalance() {
  const bool others_change = changes_.under_way() || coordinator_->needs_restart();
  const bool ends = coordinator_->ends() || end_.leaving();
  if (others_change || ends) {
    coordinator_->DropAhead(ends ? "the job ends" : "the members of the job change", now_);
  }
  const bool stands = coordinator_->quiet() || coordinator_->moving() || coordinator_->loads();
  const bool may_move = !others_change && !ends && coordinator_->training() &&
                        !coordinator_->writes() && !coordinator_->ahead().under_way();
  const View& view = changes_.members().view();
  const std::optional<BalancePlan> plan =
      balancer_.Look(view, !stands && !coordinator_->ending(), may_move, now_);
  if (plan) {
    notices_.Say("a server is " + Hundredths(plan->before) + " times as busy as the mean: " +
                 std::to_string(plan->moved) + " of " + std::to_string(view.shards.num_shards()) +
                 " shards move, by which it should become " + Hundredths(plan->after));
    moved_shards_ = plan->moved;
    coordinator_->BeginAhead(ViewOfMovedShards(view, plan->shards), now_);
  }
  if (!coordinator_->ahead().ready()) {
    // Given up, because a server could not do its part.
    if (moved_shards_ > 0 && !coordinator_->ahead().under_way()) {
      balancer_.Moved(0, now_);
      moved_shards_ = 0;
    }
    return false;
  }
  if (!coordinator_->quiet()) {
    // A job that is asked for quiet stands until its checkpoint is written, which may take minutes.
    if (!coordinator_->writes()) coordinator_->AskForQuiet();
    return false;
  }
  MoveAhead::Ready move = coordinator_->TakeAhead();
  balancer_.Moved(std::exchange(moved_shards_, 0), now_);
  kept_state_.ChangedForMachine();
  coordinator_->ChangeMembers(std::move(move.view), now_, std::move(move.copies));
  return true;
}

}  // namespace hdps
