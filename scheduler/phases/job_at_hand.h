// A running job: its record, its plan and its watches.
#pragma once

#include <cstddef>
#include <optional>

#include "common/net/node.h"
#include "scheduler/job_record.h"
#include "scheduler/plan/job_plan.h"
#include "scheduler/plan/metric_watch.h"
#include "scheduler/plan/round_script.h"
#include "scheduler/plan/row_ages.h"
#include "scheduler/plan/save_times.h"
#include "scheduler/report/run_report.h"

namespace hdps {

struct Job;
class Membership;

// Members that were lost together, and since when the job has stood.
struct Loss {
  size_t members = 0;
  TimeMs since = 0;
};

// Invariant: there is a plan exactly while all members stand at its position or work on from it.
struct JobAtHand {
  explicit JobAtHand(const Job& job);

  JobRecord record;
  std::optional<JobPlan> plan;
  RunWatches watches;
  SaveTimes save_times;
  RowAges row_ages;
  TimeMs began = 0;                      // Time at which the cluster was complete.
  std::optional<TimeMs> training_since;  // None while no round is under way.
  bool quiet_wanted = false;    // The present round ends early, because members are to change.
  Clock loading = 0;            // Clock of the checkpoint that is being loaded; 0: none.
  std::optional<Loss> loss;     // The job is on its way back from this loss.
  Clock lost_to = 0;            // The last step that is known to be lost.
  JobRecord::Sums not_told;     // Trained by workers that have left; in no heartbeat.
  bool stops_anywhere = false;  // As in SchedulerSabotage.
  const RoundScript* script = nullptr;  // As in SchedulerOptions.

  bool StopIsDueAt(Clock clock) const {
    return record.stop && (clock >= record.reached || stops_anywhere);
  }
  // Takes a script to follow, and its end as a stop that is due there.
  void Follow(const RoundScript* given);
  bool EndsByScript() const { return script != nullptr && script->stop_at != RoundScript::kNoStop; }
  // Returns the clock to train to from the position of the plan.
  Clock Until() const;
  JobPlan PlanFrom(const Job& job, const JobPosition& position, bool loaded) const;
  // Returns how long the present state was trained, until now; 0 where no row leaves by the clock.
  TimeMs TrainedMs(TimeMs now) const {
    return row_ages.any() ? record.trained_ms + (training_since ? now - *training_since : 0) : 0;
  }
  // Notes that training has paused or ended.
  void EndTraining(TimeMs now);
  void SetBackTo(const Manifest& manifest, const Job& job);
  JobState Written(JobPhase phase, TimeMs now) const;
  // Returns the progress of training; heartbeats of the workers are newer than the record.
  ProgressState Progress(const Job& job, const Membership& members) const;
};

}  // namespace hdps
