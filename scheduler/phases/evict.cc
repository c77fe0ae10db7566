// Tells all holders of rows up to which step rows are old.
#include "scheduler/phases/evict.h"

#include "scheduler/members/membership.h"

namespace hdps {

Next EvictPhase::Begin(const Turn& turn) {
  answers_.clear();
  Command evict = MakeCommand(CommandKind::kEvict);
  evict.until = turn.job.plan->position().clock;
  evict.last_steps = turn.job.row_ages.LastSteps(turn.job.record.step_times);
  turn.orders.Send(parts_.members.holders(), evict);
  return Next::Wait();
}

}  // namespace hdps
