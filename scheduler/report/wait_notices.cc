// Distinguishes an unanswered command from a worker that trains without advancing.
#include "scheduler/report/wait_notices.h"

#include "common/protocol/activity.h"
#include "common/protocol/command_messages.h"
#include "scheduler/members/membership.h"
#include "scheduler/plan/command_tracker.h"

namespace hdps {

std::vector<std::string> WaitNotices::RowsLine(const std::string& behind, TimeMs for_ms,
                                               TimeMs now) {
  if (for_ms < kNoticeEveryMs) return {};
  if (behind == rows_behind_ && now - rows_said_at_ < kRowsNoticeEveryMs) return {};
  rows_behind_ = behind;
  rows_said_at_ = now;
  return {"the job waits for rows after " + behind + ", for " + SecondsOf(for_ms)};
}

std::vector<std::string> WaitNotices::Lines(const CommandTracker& tracker,
                                            const Membership& members, TimeMs now) {
  std::vector<std::string> lines;
  const Activity* rows = nullptr;
  for (const CommandTracker::Waiting& waiting : tracker.waiting()) {
    const std::string name = members.NameOf(waiting.member);
    if (waiting.command != CommandKind::kTrain) {
      if (now - waiting.since < kNoticeEveryMs) continue;
      lines.push_back("waiting for " + name + " to answer " + CommandKindName(waiting.command) +
                      " for " + SecondsOf(now - waiting.since));
      continue;
    }
    const Activity& activity = members.ActivityOf(waiting.member);
    if (activity.wait_reason == WaitReason::kRows) {
      rows = &activity;
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
  if (rows != nullptr && lines.empty()) return RowsLine(rows->subject, rows->for_ms, now);
  return lines;
}

}  // namespace hdps
