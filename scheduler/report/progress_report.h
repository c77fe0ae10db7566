// When the progress of training is written and shown.
#pragma once

#include <functional>
#include <string>

#include "common/net/node.h"
#include "common/platform/file_system.h"
#include "scheduler/report/notices.h"
#include "scheduler/report/run_report.h"

namespace hdps {

struct AfterLoss;
struct Job;

// Invariant: a line of metrics.jsonl every `interval_ms` of training; people see the newest state
// where somebody watches it, and else a line of it every kNoticeEveryMs.
class ProgressReport {
 public:
  ProgressReport(TimeMs interval_ms, FileSystem& files, const std::string& out, const Job& job,
                 const std::string& given, bool continued)
      : interval_ms_(interval_ms), run_(files, out, job, given, continued) {}

  RunReport& run() { return run_; }
  // The cluster is complete at `now`.
  void Begin(TimeMs now) { written_at_ = said_at_ = now; }
  // Members are lost, and perhaps others go on with their rows.
  void OnLoss(TimeMs now, const AfterLoss& loss);
  // `training`: asks how far the training is; null while nobody trains.
  void OnTick(TimeMs now, const std::function<ProgressState()>& training, Notices& notices);

 private:
  const TimeMs interval_ms_;
  RunReport run_;
  TimeMs written_at_ = 0, said_at_ = 0;
  std::string shown_;  // The line that was shown last.
};

}  // namespace hdps
