// Keeps scheduler.state: when it is written, taken over by another process, and removed.
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

namespace hdps {

struct Job;

// The state of a job with these members and words on the board, of which `job` is the rest.
SchedulerState StateOf(const MemberChanges& changes, const CommandTracker& tracker,
                       const KeyValueStore& board, JobState job);

// Invariant: what is on disk is what was written last, or nothing where the newest state could not
// be written: nobody goes on from where the job no longer is. That it is not written is said once,
// and so is that it is written again.
class KeptState {
 public:
  // State that could not be written is tried again after this long.
  static constexpr TimeMs kAgainMs = 1000;
  // More numbers of commands than are given while a written state may still be lost.
  static constexpr uint64_t kIdsSkipped = 1 << 20;

  // Whose state it is: the job as the operator has started it, and SchedulerOptions::boot.
  struct Run {
    uint64_t job_digest = 0;
    uint32_t num_servers = 1, num_workers = 1;
    std::string boot;
  };
  KeptState(FileSystem& files, std::string out, Run run)
      : files_(files), out_(std::move(out)), run_(std::move(run)) {}

  // Looks for what another process of the scheduler has left of this run; returns what is wrong
  // with it, which is not used then. kOk also where there is none.
  Status Find(const Job& job);
  bool found() const { return found_.has_value(); }
  // What was found, as it holds now. `same_run`: with the stop that was asked of it. `newest`: the
  // job's checkpoint, to which it goes back where the machine has been down meanwhile: then the
  // view is the last one, but of what came in it the latest may be missing. Requires: found().
  SchedulerState TakeFound(bool same_run, const Manifest& newest,
                           std::vector<std::string>* notices);

  // A part that survives a crash of the machine has changed, the members above all; or one that
  // survives this process.
  void ChangedForMachine() { of_machine_ = true; }
  void ChangedForProcess() { of_process_ = true; }
  // Something has changed, and it is time to write it.
  bool due(TimeMs now) const {
    return (of_machine_ || of_process_) && (!in_trouble_ || now - tried_at_ >= kAgainMs);
  }
  // Writes `state`, whose run and boot it fills in. For people; empty: nothing.
  std::string Write(SchedulerState state, TimeMs now);
  // The job is over: nobody goes on from here. What is wrong, for people; empty: nothing.
  std::string Forget();

 private:
  FileSystem& files_;
  const std::string out_;
  const Run run_;
  std::optional<SchedulerState> found_;
  bool of_machine_ = false, of_process_ = false;
  TimeMs tried_at_ = 0;
  bool in_trouble_ = false;  // It could not be written, and that was said.
};

}  // namespace hdps
