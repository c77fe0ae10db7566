// Initializes the dense layers that servers did not take from another job, and the plan at step 0.
#include "scheduler/phases/init_dense.h"

#include "common/job/job_spec.h"
#include "common/job/tables/init_match.h"
#include "scheduler/members/membership.h"
#include "scheduler/phases/worker_facts.h"
#include "scheduler/plan/init_source.h"

namespace hdps {

Next InitDensePhase::Begin(const Turn& turn) {
  Command init = MakeCommand(CommandKind::kInitDense);
  if (const std::string& folder = turn.job.record.init; !folder.empty()) {
    const Result<InitSource> source = ReadInit(parts_.files, folder, parts_.job);
    if (!source.ok()) {
      return Next::Fail(3, "the checkpoint of --init: " + source.status().message());
    }
    init.taken = source->match.TakenTensors();
    turn.job.record.steps_before = source->steps_before;
  }
  turn.orders.Send({parts_.members.workers().front()}, init);
  return Next::Wait();
}

Next InitDensePhase::OnAllAnswered(const Turn& turn) {
  JobAtHand& job = turn.job;
  parts_.facts.SetEpochRows(answers_.at(parts_.members.workers().front()).rows, &job.record);
  job.plan.emplace(job.PlanFrom(parts_.job, JobPosition(), /*loaded=*/false));
  return Next::Ready();
}

}  // namespace hdps
