// How a scheduler is started.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "scheduler/plan/resume.h"

namespace hdps {

struct Job;

// Takes a mechanism out, so that a test can see its absence noticed. Never set elsewhere.
struct SchedulerSabotage {
  bool taken_is_final = false;     // Whose rank another has by now is refused.
  bool fewer_at_once = false;      // A view of fewer servers does not wait for those on their way.
  bool stop_is_kept = false;       // Another run goes on with the stop of the one before.
  bool stops_anywhere = false;     // A drain does not train again what was lost in it.
  bool stop_ends_a_stand = false;  // Who is told to stop while a member is lost ends.
};

struct SchedulerOptions {
  std::shared_ptr<const Job> job;
  std::string given_job = {};  // As a person gave it (GivenJob), for job_as_given.json; or empty.
  std::string out;             // summary.json, metrics.jsonl and checkpoint/ go here.
  uint32_t num_servers = 1;
  uint32_t num_workers = 1;
  Resume resume = Resume::kAuto;
  // Its launcher starts it again within a run, of which it goes on with the stop, too. A new run
  // forgets that of the one before.
  bool same_run = false;
  bool members_return = true;          // Somebody starts again those that fail.
  uint32_t command_retry_ms = 500;     // An unanswered command is sent again after this long.
  uint32_t report_interval_ms = 1000;  // Between two lines of metrics.jsonl.
  // BootIdentity(): what was written before, and not synced, is there as long as this stays. Empty:
  // everything is synced.
  std::string boot = {};
  SchedulerSabotage sabotage = {};
};

}  // namespace hdps
