// Passes the scheduler's messages to the operator, and limits their rate.
#pragma once

#include <functional>
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

  // Calls `keep` with every line that tells of something that happened, not of a wait or of
  // progress.
  void KeepEvents(std::function<void(const std::string& line, bool warning)> keep) {
    keep_ = std::move(keep);
  }

  void Say(const std::string& line) {
    if (!line.empty() && keep_) keep_(line, false);
    SayUnkept(line);
  }
  void Say(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) Say(line);
  }
  void Warn(const std::string& line) {
    if (line.empty()) return;
    if (keep_) keep_(line, true);
    if (listener_.warning) return listener_.warning(line);
    SayUnkept("warning: " + line);
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
    if (!line.empty() && WaitsAreDue(now)) SayUnkept(line);
  }
  // Prints which members have not answered, and which workers stand still.
  void SayWaits(const CommandTracker& tracker, const Membership& members, TimeMs now) {
    if (!WaitsAreDue(now)) return;
    for (const std::string& line : waits_.Lines(tracker, members, now)) SayUnkept(line);
  }

  // Returns whether there is a line of progress to show.
  bool shows_progress() const { return listener_.progress != nullptr; }
  // Prints the line of progress where it is not shown live.
  void SayProgress(const std::string& line) { SayUnkept(line); }
  // Replaces the line of progress; empty: removes it.
  void ShowProgress(const std::string& line) {
    if (listener_.progress) listener_.progress(line);
  }

 private:
  void SayUnkept(const std::string& line) {
    if (!line.empty() && listener_.notice) listener_.notice(line);
  }
  bool WaitsAreDue(TimeMs now) {
    if (!waits_said_at_) waits_said_at_ = now;
    if (now - *waits_said_at_ < kNoticeEveryMs) return false;
    waits_said_at_ = now;
    return true;
  }

  const ProgressListener listener_;
  std::function<void(const std::string& line, bool warning)> keep_;
  LineRateLimit outside_;
  WaitNotices waits_;
  std::optional<TimeMs> waits_said_at_;
};

}  // namespace hdps
