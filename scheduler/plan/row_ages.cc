// Notes times of steps, and looks up which step is old enough.
#include "scheduler/plan/row_ages.h"

#include <algorithm>

#include "common/job/job_spec.h"
#include "common/job/spec/table_spec.h"

namespace hdps {
namespace {

constexpr TimeMs kPartsOfLimit = 8;

// Returns the newest of `times` of at most `trained_ms`; the end if there is none.
auto NewestUntil(const std::vector<StepTime>& times, TimeMs trained_ms) {
  const auto after = std::ranges::upper_bound(times, trained_ms, {}, &StepTime::trained_ms);
  return after == times.begin() ? times.end() : after - 1;
}

}  // namespace

RowAges::RowAges(const Job& job) {
  TimeMs shortest_ms = 0;
  for (const TableSpec& table : job.tables) {
    const auto limit_ms = static_cast<TimeMs>(table.policy.evict_after_seconds) * 1000;
    limits_ms_.push_back(limit_ms);
    if (limit_ms == 0) continue;
    shortest_ms = shortest_ms == 0 ? limit_ms : std::min(shortest_ms, limit_ms);
    longest_ms_ = std::max(longest_ms_, limit_ms);
  }
  // No more times are kept than a manifest may hold.
  every_ms_ =
      std::max(shortest_ms / kPartsOfLimit, longest_ms_ / static_cast<TimeMs>(kStepTimesMax / 2));
}

bool RowAges::Due(const std::vector<StepTime>& times, TimeMs trained_ms) const {
  if (!any()) return false;
  return trained_ms - (times.empty() ? 0 : times.back().trained_ms) >= every_ms_;
}

void RowAges::Note(StepTime now, std::vector<StepTime>* times) const {
  times->push_back(now);
  const auto oldest = NewestUntil(*times, now.trained_ms - longest_ms_);
  if (oldest != times->end()) times->erase(times->begin(), oldest);
}

std::vector<Clock> RowAges::LastSteps(const std::vector<StepTime>& times) const {
  std::vector<Clock> last;
  for (const TimeMs limit_ms : limits_ms_) {
    const bool limited = limit_ms > 0 && !times.empty();
    const auto at = limited ? NewestUntil(times, times.back().trained_ms - limit_ms) : times.end();
    last.push_back(at == times.end() ? 0 : at->clock);
  }
  return last;
}

}  // namespace hdps
