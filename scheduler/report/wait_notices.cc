// Distinguishes an unanswered command from a worker that trains without advancing.
#include "scheduler/report/wait_notices.h"

#include "common/protocol/command_messages.h"
#include "scheduler/members/membership.h"
#include "scheduler/plan/command_tracker.h"

namespace hdps {

std::vector<std::string> WaitNotices::Lines(const CommandTracker& tracker,
                                            const Membership& members, TimeMs now) {
  std::vector<std::string> lines;
  for (const CommandTracker::Waiting& waiting : tracker.waiting()) {
    const std::string name = members.NameOf(waiting.member);
    if (waiting.command != CommandKind::kTrain) {
      if (now - waiting.since < kNoticeEveryMs) continue;
      lines.push_back("waiting for " + name + " to answer " + CommandKindName(waiting.command) +
                      " for " + SecondsOf(now - waiting.since));
      continue;
    }
    // Training takes long; only a worker whose clock stands still is reported.
    const Clock clock = members.WorkerClock(*members.WorkerRank(waiting.member));
    Standing& stand = standing_[waiting.member];
    if (stand.clock != clock) {
      stand = {clock, now};
    } else if (now - stand.since >= kNoticeEveryMs) {
      lines.push_back(name + " has been at step " + std::to_string(clock) + " for " +
                      SecondsOf(now - stand.since));
    }
  }
  return lines;
}

}  // namespace hdps
