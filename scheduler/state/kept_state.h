// Keeps scheduler.state: writes it, takes it over from a former process, and removes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/net/node.h"
#include "common/platform/file_system.h"
#include "common/protocol/manifest.h"
#include "scheduler/members/key_value_store.h"
#include "scheduler/members/member_changes.h"
#include "scheduler/plan/command_tracker.h"
#include "scheduler/scheduler_state.h"
#include "scheduler/state_log.h"

namespace hdps {

struct Job;

// Returns the state of a job from its members, commands and key-value entries; `job` is the rest.
SchedulerState StateOf(const MemberChanges& changes, const CommandTracker& tracker,
                       const KeyValueStore& board, JobState job);

// Invariant: the file holds the newest state or does not exist: if the newest state cannot be
// written, the file is removed, so that no process takes over an outdated one. The failure is
// reported once, and so is its end. Files of older reigns are removed with the first write.
class KeptState {
 public:
  // Time after which a failed write is tried again.
  static constexpr TimeMs kAgainMs = 1000;
  // More command numbers than are given while a written state may still be lost.
  static constexpr uint64_t kIdsSkipped = 1 << 20;

  // Identifies the run: the job as the operator started it, and SchedulerOptions::boot; and this
  // process in it by SchedulerOptions::reign.
  struct Run {
    uint64_t job_digest = 0;
    uint32_t num_servers = 1, num_workers = 1;
    std::string boot;
    uint64_t reign = 0;
  };
  KeptState(FileSystem& files, std::string out, Run run)
      : files_(files), out_(std::move(out)), run_(std::move(run)) {}

  // Errors: kInvalidArgument if a scheduler of a newer reign has written a state.
  Status CheckReign() const;
  // Looks for the state of a former process of this run. Returns why a state cannot be used; kOk
  // also if there is none.
  Status Find(const Job& job);
  bool found() const { return found_.has_value(); }
  // Returns the state that was found, adapted to the present. `same_run`: keeps the stop that was
  // asked for. `newest`: the job's newest checkpoint; the job goes back to it if the machine was
  // down meanwhile, when the view is the last one but recent changes within it may be missing.
  // Requires: found().
  SchedulerState TakeFound(bool same_run, const Manifest& newest,
                           std::vector<std::string>* notices);

  // Notes a change of a part that must survive a crash of the machine (above all the members), or
  // only of this process.
  void ChangedForMachine() { of_machine_ = true; }
  void ChangedForProcess() { of_process_ = true; }
  // Is true if a change is to be written now.
  bool due(TimeMs now) const {
    return (of_machine_ || of_process_) && (!in_trouble_ || now - tried_at_ >= kAgainMs);
  }
  // Writes `state` after filling in its run and boot. Returns a notice, or an empty text.
  std::string Write(SchedulerState state, TimeMs now);
  // Removes the file, as the job is over. Returns a warning, or an empty text.
  std::string Forget();

 private:
  FileSystem& files_;
  const std::string out_;
  const Run run_;
  std::optional<SchedulerState> found_;
  StateLog log_;
  bool of_machine_ = false, of_process_ = false;
  bool older_ = true;  // Files of older reigns may exist.
  TimeMs tried_at_ = 0;
  bool in_trouble_ = false;  // Writing failed, and that was reported.
};

}  // namespace hdps
