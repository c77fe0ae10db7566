// The lines that a scheduler says to people, and how often.
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

// An empty line is nothing, and is not said.
//
// Invariant: of lines about who is waited for, all that are due at one moment are said, and then
// none for kNoticeEveryMs; of lines that anybody can cause, no more than OutsideLines lets through.
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
  // A line that anybody can cause.
  void SayOutside(const std::string& line, TimeMs now) {
    if (line.empty()) return;
    if (const auto taken = outside_.Take(line, now)) Say(*taken);
  }
  // How many of those were left out, when it is time to tell.
  void SayLeftOut(TimeMs now) {
    if (const auto line = outside_.LeftOut(now)) Say(*line);
  }

  // The patience with those who are waited for is counted from here.
  void BeginWaits(TimeMs now) { waits_said_at_ = now; }
  void SayWait(const std::string& line, TimeMs now) {
    if (!line.empty() && WaitsAreDue(now)) Say(line);
  }
  // Who has not answered, and who stands still.
  void SayWaits(const CommandTracker& tracker, const Membership& members, TimeMs now) {
    if (WaitsAreDue(now)) Say(waits_.Lines(tracker, members, now));
  }

  // Whether somebody watches the line of progress.
  bool shows_progress() const { return listener_.progress != nullptr; }
  // Replaces what stands there; empty: nothing stands there any more.
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
  OutsideLines outside_;
  WaitNotices waits_;
  std::optional<TimeMs> waits_said_at_;
};

}  // namespace hdps
