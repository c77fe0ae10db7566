// Lines for people about members that take long: who has not answered, who stands still.
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

// People hear of a wait after this long, and again after each such time.
inline constexpr TimeMs kNoticeEveryMs = 10000;

// Invariant: remembers of each worker since when it has been at its clock, as far as it was asked.
class WaitNotices {
 public:
  // One line for each member that is waited for longer than kNoticeEveryMs.
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
