// Simulates how scripts/local_cluster.sh restarts the processes of a job.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/net/node.h"
#include "common/protocol/status_messages.h"

namespace hdps::sim {

// The place of a process: its role, and its number among the processes ever started in the role.
// For the first ones this is the rank they ask for; the scheduler is number 0.
using Place = std::pair<Role, uint32_t>;

// Removes a rule, so that a test can see its absence noticed.
struct LauncherSabotage {
  bool refusal_ends_job = false;  // Status 2 of a restarted member ends the job.
  bool none_in_drain = false;     // In a drain no process is started again.
};

// Restarts processes that were killed or ended with status 3 with the same rank, after growing
// delays. Status 2 is final: for the whole job if it is the first news of a member, otherwise for
// this member.
//
// Invariant: each place has a time at which a process is due, or is not waited for.
class Launcher {
 public:
  // `delay_ms`: time until the first restart; 0: no restarts.
  Launcher(TimeMs delay_ms, const LauncherSabotage& sabotage)
      : delay_ms_(delay_ms), sabotage_(sabotage) {}

  // Makes a process due at `at`. Not `ours`: another launcher manages it, and its end does not
  // affect the job; `returns`: that launcher restarts it.
  void Want(Place who, TimeMs at, bool ours = true, bool returns = true);
  void Forget(Place who) { processes_.erase(who); }
  std::vector<Place> wanted() const;

  // Takes the news that no process runs there: none was started, it was killed (no status), or it
  // ended. Returns true if one is due now, which then counts as started.
  bool StartsNow(Place who, std::optional<int> status, TimeMs now);
  // Returns the start of the next scheduler after this one was killed; nothing: the job is over.
  std::optional<TimeMs> SchedulerKilled(TimeMs now);

  void Stop() { draining_ = true; }
  bool draining() const { return draining_; }
  // Returns why the launcher has ended the job; empty if it has not.
  std::string GaveUp(TimeMs now) const { return ends_at_ && now >= *ends_at_ ? why_ : ""; }

 private:
  struct Process {
    std::optional<TimeMs> due;
    bool ours = true, returns = true;
    uint32_t deaths = 0, failures = 0;  // Failures are deaths that no fault caused.
    TimeMs delay_ms = 0;
  };
  // Returns the delay before the next restart, which grows.
  TimeMs DelayOf(Process* process, bool failed) const;
  void GiveUpAt(TimeMs at, const std::string& why);

  const TimeMs delay_ms_;
  const LauncherSabotage sabotage_;
  std::map<Place, Process> processes_;
  Process scheduler_;
  bool draining_ = false;
  std::optional<TimeMs> ends_at_;
  std::string why_;
};

}  // namespace hdps::sim
