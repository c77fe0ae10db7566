// Decides when the failures of members end a job.
#include "scheduler/members/member_failures.h"

#include <algorithm>

#include "common/base/exit_status.h"

namespace hdps {

MemberFailures::Failures& MemberFailures::Count(const MemberFailure& failure, Clock clock) {
  if (clock > furthest_) at_.clear();
  furthest_ = std::max(furthest_, clock);
  Failures& failures = at_[failure.place];
  if (failures.count++ == 0) failures.first_cause = failure.cause;
  failures.role = failure.role;
  failures.mistakes += failure.mistake_status != kExitDone;
  return failures;
}

size_t MemberFailures::Mistaken(Role role) const {
  return static_cast<size_t>(std::ranges::count_if(
      at_, [role](const auto& at) { return at.second.role == role && at.second.mistakes > 0; }));
}

std::optional<JobFailure> MemberFailures::AddBeforeFirstView(const MemberFailure& failure,
                                                             size_t places) {
  Count(failure, 0);
  if (failure.mistake_status == kExitDone || Mistaken(failure.role) < places) return std::nullopt;
  return JobFailure{failure.mistake_status, failure.cause};
}

std::optional<JobFailure> MemberFailures::Add(const MemberFailure& failure, Clock clock,
                                              size_t members, const std::string& point_of_return) {
  const Failures& failures = Count(failure, clock);
  if (failure.mistake_status != kExitDone) {
    mistake_ = {failure.mistake_status, failure.cause};
    if (failures.count >= kMax || failures.mistakes >= kMistakesMax ||
        Mistaken(failure.role) >= members) {
      return JobFailure{failure.mistake_status, failures.first_cause};
    }
  }
  // `mistakes` of two processes are believed even if a third one blames nobody.
  if (failures.count < kMax && failures.mistakes < kMistakesMax) return std::nullopt;
  return JobFailure{kExitFailed, failure.place + " has failed " + std::to_string(failures.count) +
                                     " times without a step of progress between, at first " +
                                     failures.first_cause + ". The job goes on from " +
                                     point_of_return + " when it is started again"};
}

}  // namespace hdps
