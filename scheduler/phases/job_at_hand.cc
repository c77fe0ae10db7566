// Computes the progress of a job and its written state.
#include "scheduler/phases/job_at_hand.h"

#include <algorithm>
#include <utility>

#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/train_spec.h"
#include "scheduler/members/membership.h"
#include "scheduler/picture/push_staleness.h"

namespace hdps {

JobAtHand::JobAtHand(const Job& job)
    : watches(job, Watched()), save_times(job.checkpoint), row_ages(job) {}

void JobAtHand::Follow(const RoundScript* given) {
  script = given;
  if (!EndsByScript()) return;
  record.stop = true;
  record.reached = script->stop_at;
}

Clock JobAtHand::Until() const {
  return script == nullptr ? plan->until() : std::min(plan->until(), script->stop_at);
}

JobPlan JobAtHand::PlanFrom(const Job& job, const JobPosition& position, bool loaded) const {
  JobPosition start = position;
  // A program that begins again may have more examples, so its end is none of the job.
  if (IsTablesJob(job)) start.epoch = 0;
  return JobPlan(job, start,
                 {.loaded = loaded,
                  .evaluated = watches.state().best.last_clock,
                  .out_of_patience = watches.out_of_patience(),
                  .epoch_rows = record.epoch_rows});
}

void JobAtHand::EndTraining(TimeMs now) {
  record.trained_ms = TrainedMs(now);
  if (training_since) record.training_ms += now - *std::exchange(training_since, std::nullopt);
}

void JobAtHand::SetBackTo(const Manifest& manifest, const Job& job) {
  JobState state;
  static_cast<JobRecord&>(state) = std::move(record);
  GoOnFrom(manifest, &state);
  watches = RunWatches(job, state.watched);
  record = std::move(static_cast<JobRecord&>(state));
}

JobState JobAtHand::Written(JobPhase phase, TimeMs now) const {
  JobState state;
  static_cast<JobRecord&>(state) = record;
  state.phase = phase;
  if (plan) state.plan = plan->state();
  state.watched = watches.state();
  state.reached = std::max(state.reached, state.plan.position.clock);
  state.trained_ms = TrainedMs(now);
  if (training_since) state.training_ms += now - *training_since;
  state.wall_ms = now - began;
  return state;
}

ProgressState JobAtHand::Progress(const Job& job, const Membership& members) const {
  ProgressState state;
  if (plan) {
    state.clock = plan->position().clock;
    state.epoch = plan->position().epoch;
    state.epoch_begun = state.clock != plan->position().epoch_start;
  }
  const Membership::Progress told = members.progress();
  state.rate = watches.state().rate;
  state.examples = record.trained.examples;
  state.loss_sum = record.trained.loss_sum;
  state.cache = members.cache();
  if (job.train.mode != Mode::kSync) state.push_staleness = PushStaleness(job, members);
  if (!training_since) return state;
  state.clock = std::max(state.clock, told.clock);
  state.epoch_begun = true;
  // Before the first step of an epoch, workers still report their position in the last one.
  if (told.clock > plan->position().epoch_start) state.epoch_progress = told.epoch_progress;
  const bool same_for_all = job.parallel.dataset_strategy == DatasetStrategy::kFullBatch;
  const uint64_t copies = same_for_all ? members.workers().size() : 1;
  const uint64_t examples = not_told.examples + told.examples / copies;
  if (examples > state.examples) {
    state.examples = examples;
    state.loss_sum = not_told.loss_sum + told.loss_sum / static_cast<double>(copies);
  }
  return state;
}

}  // namespace hdps
