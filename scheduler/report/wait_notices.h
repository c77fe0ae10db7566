// Composes lines about slow members: those that have not answered, and workers that stand still.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/net/node.h"
#include "scheduler/members/time_text.h"

namespace hdps {

class CommandTracker;
class Membership;

// A wait is reported after this time, and again each time it has passed.
inline constexpr TimeMs kNoticeEveryMs = 10000;

// Invariant: remembers since when each worker has been at its clock, as far as it was looked at.
class WaitNotices {
 public:
  // Returns one line for each member that is waited for longer than kNoticeEveryMs.
  std::vector<std::string> Lines(const CommandTracker& tracker, const Membership& members,
                                 TimeMs now);

 private:
  struct Standing {
    Clock clock = -1;
    TimeMs since = 0;
  };
  std::map<PeerId, Standing> standing_;
};

}  // namespace hdps
