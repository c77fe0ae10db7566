// What scripts/local_cluster.sh does about the processes of a job that end.
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

// Where a process runs: a role, and which of those of the role that were ever started. Of the first
// ones that is the rank they ask for; the scheduler is the 0th.
using Place = std::pair<Role, uint32_t>;

// Takes a rule out, so that a test can see its absence noticed.
struct LauncherSabotage {
  bool refusal_ends_job = false;  // Status 2 of a member that had died is final for all.
  bool none_in_drain = false;     // Once it was told to stop it starts nobody again.
};

// Whoever was killed or ended with status 3 is started again with its rank, later and later. Status
// 2 is final: for all where it is the first that is heard of a member, or else for that one.
//
// Invariant: a place has a time at which a process is due there, or nobody waits for one.
class Launcher {
 public:
  // `delay_ms`: until the first restart; 0: nobody is started again.
  Launcher(TimeMs delay_ms, const LauncherSabotage& sabotage)
      : delay_ms_(delay_ms), sabotage_(sabotage) {}

  // A process is to be there from `at` on. Not `ours`: somebody else sees to it, and what becomes
  // of it is nothing to the job; `returns`: he starts it again.
  void Want(Place who, TimeMs at, bool ours = true, bool returns = true);
  void Forget(Place who) { processes_.erase(who); }
  std::vector<Place> wanted() const;

  // No process runs there: none was started yet, it was killed (no status), or it ended. True when
  // one is due now; then it is taken as started.
  bool StartsNow(Place who, std::optional<int> status, TimeMs now);
  // When the next process of the scheduler starts, which was killed; none: the job is over.
  std::optional<TimeMs> SchedulerKilled(TimeMs now);

  void Stop() { draining_ = true; }
  bool draining() const { return draining_; }
  // Why it has ended the job itself; empty while it has not.
  std::string GaveUp(TimeMs now) const { return ends_at_ && now >= *ends_at_ ? why_ : ""; }

 private:
  struct Process {
    std::optional<TimeMs> due;
    bool ours = true, returns = true;
    uint32_t deaths = 0, failures = 0;  // Failures are those that nobody has killed.
    TimeMs delay_ms = 0;
  };
  // Later and later.
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
