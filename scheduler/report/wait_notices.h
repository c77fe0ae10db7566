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
// The wait for rows of a log that the job follows is no trouble, and is reported less often.
inline constexpr TimeMs kRowsNoticeEveryMs = 60000;

// Invariant: remembers since when each worker has been at its clock, as far as it was looked at.
class WaitNotices {
 public:
  // Returns one line for each member that is waited for longer than kNoticeEveryMs, and one for all
  // workers that wait for rows.
  std::vector<std::string> Lines(const CommandTracker& tracker, const Membership& members,
                                 TimeMs now);

 private:
  // Returns the line about rows behind this place, unless it was said lately.
  std::vector<std::string> RowsLine(const std::string& behind, TimeMs for_ms, TimeMs now);

  struct Standing {
    Clock clock = -1;
    TimeMs since = 0;
  };
  std::map<PeerId, Standing> standing_;
  std::string rows_behind_;  // Of the last line about rows.
  TimeMs rows_said_at_ = 0;
};

}  // namespace hdps
