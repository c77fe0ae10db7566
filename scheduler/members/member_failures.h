// Decides whether members that fail are replaced or end the job.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "common/base/ids.h"
#include "scheduler/members/job_failure.h"

namespace hdps {

// A member that cannot go on. Its report costs that member, not the job: blame on the operator or
// the data is believed only if a second process in its place, or all members of its role, report it
// too, or if no replacement comes.
struct MemberFailure {
  Role role = Role::kWorker;
  std::string place;       // Such as "worker 1", whichever process has it.
  std::string cause;       // Such as "worker 1 (host-a 4711): ...".
  int mistake_status = 0;  // Exit status of the job if the member is believed; 0: no blame.
};

// Invariant: counts the failures at each place of the cluster since the job last made progress
// beyond the furthest step of any failure.
class MemberFailures {
 public:
  // Failures at one place without progress that end the job, because another process would fail
  // too.
  static constexpr int kMax = 3;
  // Processes in succession that must blame the operator or the data to be believed.
  static constexpr int kMistakesMax = 2;

  // Adds a failure before the first view; returns how the job ends, if it does. `places`: of its
  // role.
  std::optional<JobFailure> AddBeforeFirstView(const MemberFailure& failure, size_t places);
  // Adds a failure when the job stood at `clock` with `members` members of that role; returns how
  // the job ends, if it does. `point_of_return`: where the job resumes when it is started again.
  std::optional<JobFailure> Add(const MemberFailure& failure, Clock clock, size_t members,
                                const std::string& point_of_return);

  // The last mistake reported by a member that is not replaced yet; the job ends with it if no
  // replacement comes.
  const std::optional<JobFailure>& mistake() const { return mistake_; }
  void Replaced() { mistake_.reset(); }

 private:
  struct Failures {
    Role role = Role::kWorker;
    int count = 0, mistakes = 0;
    std::string first_cause;
  };
  Failures& Count(const MemberFailure& failure, Clock clock);
  size_t Mistaken(Role role) const;  // Places that have reported a mistake.

  Clock furthest_ = -1;
  std::map<std::string, Failures> at_;  // Failures of each place.
  std::optional<JobFailure> mistake_;
};

}  // namespace hdps
