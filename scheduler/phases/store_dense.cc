// Stores dense layers of workers at the servers.
#include "scheduler/phases/store_dense.h"

#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "scheduler/members/membership.h"

namespace hdps {

std::vector<PeerId> WhoStoresDense(const Job& job, const Membership& members) {
  if (job.parallel.optimizer.enabled || IsTablesJob(job)) return members.workers();
  return {members.workers().front()};
}

Next StoreDensePhase::Begin(const Turn& turn) {
  turn.orders.Send(WhoStoresDense(parts_.job, parts_.members),
                   MakeCommand(CommandKind::kStoreDense));
  return Next::Wait();
}

Next StoreDensePhase::OnAllAnswered(const Turn& turn) {
  turn.job.plan->Done();
  return Next::Done();
}

}  // namespace hdps
