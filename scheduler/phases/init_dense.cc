// Initializes the dense layers, and the plan at step 0.
#include "scheduler/phases/init_dense.h"

#include "common/job/job_spec.h"
#include "scheduler/members/membership.h"
#include "scheduler/phases/worker_facts.h"

namespace hdps {

Next InitDensePhase::Begin(const Turn& turn) {
  turn.orders.Send({parts_.members.workers().front()}, MakeCommand(CommandKind::kInitDense));
  return Next::Wait();
}

Next InitDensePhase::OnAllAnswered(const Turn& turn) {
  JobAtHand& job = turn.job;
  parts_.facts.SetEpochRows(answers_.at(parts_.members.workers().front()).rows, &job.record);
  job.plan.emplace(job.PlanFrom(parts_.job, JobPosition(), /*loaded=*/false));
  return Next::Ready();
}

}  // namespace hdps
