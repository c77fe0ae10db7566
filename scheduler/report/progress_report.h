// Writes and shows the progress of training at intervals.
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

// Invariant: metrics.jsonl gets a line every `interval_ms` of training. A live display shows the
// newest state; otherwise a line of it is printed every kNoticeEveryMs.
class ProgressReport {
 public:
  ProgressReport(TimeMs interval_ms, FileSystem& files, const std::string& out, const Job& job,
                 const std::string& given, bool continued, bool tensorboard = false)
      : interval_ms_(interval_ms), run_(files, out, job, given, continued, tensorboard) {}

  RunReport& run() { return run_; }
  const RunReport& run() const { return run_; }
  // Starts the intervals when the cluster is complete.
  void Begin(TimeMs now) { written_at_ = said_at_ = now; }
  // Reports lost members, and other servers that take over their rows.
  void OnLoss(TimeMs now, const AfterLoss& loss);
  // `training` returns the progress of training; null while there is none.
  void OnTick(TimeMs now, const std::function<ProgressState()>& training, Notices& notices);

 private:
  const TimeMs interval_ms_;
  RunReport run_;
  TimeMs written_at_ = 0, said_at_ = 0;
  std::string shown_;  // The line that was shown last.
};

}  // namespace hdps
