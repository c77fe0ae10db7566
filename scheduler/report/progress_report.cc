// Reports the progress of training at intervals.
#include "scheduler/report/progress_report.h"

#include <optional>

#include "scheduler/members/member_step.h"

namespace hdps {

void ProgressReport::OnLoss(TimeMs now, const AfterLoss& loss) {
  for (const AfterLoss::Lost& one : loss.lost) run_.Lost(now, one.name, one.silent_ms, one.cause);
  for (const AfterLoss::NewPrimary& one : loss.promoted) {
    run_.Promoted(now, one.group.value, one.from, one.to);
  }
}

void ProgressReport::OnTick(TimeMs now, const std::function<ProgressState()>& training,
                            Notices& notices) {
  if (const std::optional<std::string> trouble = run_.TakeTrouble()) notices.Say(*trouble);
  const bool due = training && now - written_at_ >= interval_ms_;
  if (due) {
    written_at_ = now;
    run_.Progress(now, training());
  }
  // The live line must not be older than the notice of an evaluation above it.
  if (notices.shows_progress()) {
    if (shown_ != run_.line()) notices.ShowProgress(shown_ = run_.line());
  } else if (due && now - said_at_ >= kNoticeEveryMs) {
    said_at_ = now;
    notices.SayProgress(run_.line());
  }
}

}  // namespace hdps
