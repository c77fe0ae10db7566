// What the failures of members come to: another process takes the place, or the job ends.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "common/base/ids.h"
#include "scheduler/members/job_failure.h"

namespace hdps {

// A member that cannot go on. A member's word costs that member, and not the job: that the operator
// or the data is to blame is believed when a second process in its place, or all of its role, say
// so, or when nobody comes for it.
struct MemberFailure {
  Role role = Role::kWorker;
  std::string place;  // "worker 1", whoever has it.
  std::string cause;  // "worker 1 (host-a 4711): ...", for people.
  int mistake_status =
      0;  // The job ends with it where the member is believed; 0: it blames nobody.
};

// Invariant: counts, for each place of the cluster, the failures since the job last came further
// than it had ever come at a failure.
class MemberFailures {
 public:
  // So many of one place, without a step of progress between: another process would fail too.
  static constexpr int kMax = 3;
  // Two processes, one after the other, that blame the operator or the data are believed.
  static constexpr int kMistakesMax = 2;

  // Before the first view, with `places` for its role: with what the job ends, where it does.
  std::optional<JobFailure> AddBeforeFirstView(const MemberFailure& failure, size_t places);
  // When the job stood at `clock`, and had `members` of its role. `point_of_return`: from where the
  // job goes on when it is started again.
  std::optional<JobFailure> Add(const MemberFailure& failure, Clock clock, size_t members,
                                const std::string& point_of_return);

  // The last mistake that a member has found which is not replaced yet: the job ends with it when
  // nobody comes.
  const std::optional<JobFailure>& mistake() const { return mistake_; }
  void Replaced() { mistake_.reset(); }

 private:
  struct Failures {
    Role role = Role::kWorker;
    int count = 0, mistakes = 0;
    std::string first_cause;
  };
  Failures& Count(const MemberFailure& failure, Clock clock);
  size_t Mistaken(Role role) const;  // Places that have found a mistake.

  Clock furthest_ = -1;
  std::map<std::string, Failures> at_;  // By place.
  std::optional<JobFailure> mistake_;
};

}  // namespace hdps
