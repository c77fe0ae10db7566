// The options of a scheduler.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/job/words/setting_origin.h"
#include "common/net/node.h"
#include "scheduler/plan/resume.h"

namespace hdps {

template <typename T>
class Published;

class MonotonicClock;
struct RoundScript;
class Programs;
struct Job;
struct JobPicture;

// Switches safety mechanisms off, so that tests can check that their absence is noticed. Never set
// elsewhere.
struct SchedulerSabotage {
  bool taken_is_final = false;  // A process whose rank is taken is refused at once.
  bool fewer_at_once = false;   // A view of fewer servers does not wait for those that are joining.
  bool stop_is_kept = false;    // A new run keeps the stop of the former one.
  bool stops_anywhere = false;  // A drain does not train lost steps again.
  bool stop_ends_a_stand = false;  // A stop while a member is lost ends the job.
  bool heir_begins_anew = false;   // Who takes a place is not told that its order was begun.
  bool leaves_unsaved = false;     // Members are let go although their steps are not saved.
};

struct SchedulerOptions {
  std::shared_ptr<const Job> job;
  std::string given_job = {};  // As the user gave it (GivenJob), for job_as_given.json; or empty.
  std::string out;             // summary.json, metrics.jsonl and checkpoint/ go here.
  uint32_t num_servers = 1;
  uint32_t num_workers = 1;
  Resume resume = Resume::kAuto;
  // Checkpoint of another job that a run without one of its own begins with (FindInit); or empty.
  std::string init = {};
  // A launcher restarts this scheduler within one run, so a stop of the run is kept. A new run
  // forgets the stop of the former one.
  bool same_run = false;
  bool guests_read = false;            // Callers that are no members are told where rows are.
  bool members_return = true;          // A launcher restarts members that fail.
  uint32_t command_retry_ms = 500;     // Unanswered commands are sent again after this time.
  uint32_t report_interval_ms = 1000;  // Between two lines of metrics.jsonl.
  bool tensorboard = false;            // These lines also go to OUT/tensorboard.
  // Number of this scheduler's reign if it was elected; 0: there is no election.
  uint64_t reign = 0;
  // BootIdentity(): files written but not synced are intact as long as it stays the same. Empty:
  // everything is synced, as an election needs, whose schedulers may be on other machines.
  std::string boot = {};
  // Gets pictures of the job for readers on other threads, at most ten a second; null: none are
  // made unless a message asks.
  std::shared_ptr<Published<JobPicture>> pictures = nullptr;
  // What pictures tell of the start: where settings come from, the command that resumes the job,
  // the time on the node's clock, and the milliseconds since 1970 at zero of that clock.
  std::vector<SettingOrigin> settings = {};
  std::string resume_command = {};
  TimeMs started_at = 0;
  int64_t unix_ms_at_zero = 0;
  // Members bring their clocks of traces together with it; null: they do not.
  MonotonicClock* clock = nullptr;
  // Starts rclone for copies of checkpoints, and outlives the scheduler; null: none are made.
  Programs* programs = nullptr;
  const RoundScript* script = nullptr;  // A run to be replayed; null: none. Outlives the scheduler.
  SchedulerSabotage sabotage = {};
};

}  // namespace hdps
