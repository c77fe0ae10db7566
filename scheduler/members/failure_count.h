// Members that fail by themselves, one process after the other.
#pragma once

#include <map>
#include <string>

#include "common/base/ids.h"

namespace hdps {

// Invariant: counts, for each place of the cluster, the failures since the job last came further
// than it had ever come at a failure.
class FailureCount {
 public:
  // So many of one place, without a step of progress between: another process would fail too.
  static constexpr int kMax = 3;

  // The member at `place` ("server 1") could not go on, when the job stood at `clock`.
  void Add(const std::string& place, const std::string& cause, Clock clock) {
    if (clock > furthest_) at_.clear();
    if (clock > furthest_) furthest_ = clock;
    Failures& failures = at_[place];
    if (failures.count++ == 0) failures.first_cause = cause;
  }
  bool is_loop(const std::string& place) const {
    const auto failures = at_.find(place);
    return failures != at_.end() && failures->second.count >= kMax;
  }
  const std::string& first_cause(const std::string& place) const {
    return at_.at(place).first_cause;
  }

 private:
  struct Failures {
    int count = 0;
    std::string first_cause;
  };
  Clock furthest_ = -1;
  std::map<std::string, Failures> at_;
};

}  // namespace hdps
