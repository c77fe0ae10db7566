// A job while it is led: its record, the plan and the watches that decide by it.
#pragma once

#include <cstddef>
#include <optional>

#include "common/net/node.h"
#include "scheduler/job_record.h"
#include "scheduler/plan/job_plan.h"
#include "scheduler/plan/metric_watch.h"
#include "scheduler/report/run_report.h"

namespace hdps {

struct Job;
class Membership;

// Members that were lost together, and since when the job has stood.
struct Loss {
  size_t members = 0;
  TimeMs since = 0;
};

// Invariant: there is a plan exactly while everybody stands at its position, or works on from it.
struct JobAtHand {
  explicit JobAtHand(const Job& job) : watches(job, Watched()) {}

  JobRecord record;
  std::optional<JobPlan> plan;
  RunWatches watches;
  TimeMs began = 0;                      // The cluster was complete.
  std::optional<TimeMs> training_since;  // None while no round is at hand.
  bool quiet_wanted = false;             // The round at hand ends early: members are to change.
  Clock loading = 0;                     // The checkpoint that is being loaded; 0: none.
  std::optional<Loss> loss;              // The job is on its way back from it.
  Clock lost_to = 0;                     // The last step that is known to be lost.
  JobRecord::Sums not_told;     // Trained, and in no worker's heartbeats: by those that have left.
  bool stops_anywhere = false;  // SchedulerSabotage takes out that a drain trains lost steps again.

  bool StopIsDueAt(Clock clock) const {
    return record.stop && (clock >= record.reached || stops_anywhere);
  }
  JobPlan PlanFrom(const Job& job, const JobPosition& position, bool loaded) const;
  // Nobody trains from here on.
  void EndTraining(TimeMs now);
  void SetBackTo(const Manifest& manifest, const Job& job);
  JobState Written(JobPhase phase, TimeMs now) const;
  // What workers tell while they train is newer than the record.
  ProgressState Progress(const Job& job, const Membership& members) const;
};

}  // namespace hdps
