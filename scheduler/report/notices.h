// Passes the scheduler's messages to the operator, and limits their rate.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/outside_text.h"
#include "common/net/node.h"
#include "scheduler/report/progress_listener.h"
#include "scheduler/report/wait_notices.h"

namespace hdps {

class CommandTracker;
class Membership;

// Ignores empty lines.
//
// Invariant: all lines about waits that are due at one moment are printed, and then none for
// kNoticeEveryMs. Lines that anybody outside can cause are limited by LineRateLimit.
class Notices {
 public:
  explicit Notices(ProgressListener listener) : listener_(std::move(listener)) {}

  void Say(const std::string& line) {
    if (!line.empty() && listener_.notice) listener_.notice(line);
  }
  void Say(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) Say(line);
  }
  void Warn(const std::string& line) {
    if (line.empty()) return;
    if (listener_.warning) return listener_.warning(line);
    Say("warning: " + line);
  }
  // Prints a line that anybody outside can cause.
  void SayOutside(const std::string& line, TimeMs now) {
    if (line.empty()) return;
    if (const auto taken = outside_.Take(line, now)) Say(*taken);
  }
  // Prints how many of those were left out, when it is due.
  void SayLeftOut(TimeMs now) {
    if (const auto line = outside_.LeftOut(now)) Say(*line);
  }

  // Restarts the time before the next line about a wait.
  void BeginWaits(TimeMs now) { waits_said_at_ = now; }
  void SayWait(const std::string& line, TimeMs now) {
    if (!line.empty() && WaitsAreDue(now)) Say(line);
  }
  // Prints which members have not answered, and which workers stand still.
  void SayWaits(const CommandTracker& tracker, const Membership& members, TimeMs now) {
    if (WaitsAreDue(now)) Say(waits_.Lines(tracker, members, now));
  }

  // Returns whether there is a line of progress to show.
  bool shows_progress() const { return listener_.progress != nullptr; }
  // Replaces the line of progress; empty: removes it.
  void ShowProgress(const std::string& line) {
    if (listener_.progress) listener_.progress(line);
  }

 private:
  bool WaitsAreDue(TimeMs now) {
    if (!waits_said_at_) waits_said_at_ = now;
    if (now - *waits_said_at_ < kNoticeEveryMs) return false;
    waits_said_at_ = now;
    return true;
  }

  const ProgressListener listener_;
  LineRateLimit outside_;
  WaitNotices waits_;
  std::optional<TimeMs> waits_said_at_;
};

}  // namespace hdps
