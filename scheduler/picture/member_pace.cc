// Compares readings of now with those of some seconds ago.
#include "scheduler/picture/member_pace.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

#include "common/telemetry/figure_records.h"

namespace hdps {
namespace {

constexpr TimeMs kWindowMs = 10'000, kKeepEveryMs = 1000;
constexpr double kNsPerSecond = 1e9;

constexpr size_t StageNamed(std::string_view name) {
  return static_cast<size_t>(std::ranges::find(kStageLabels, name) - kStageLabels.begin());
}
constexpr size_t kTotal = StageNamed("total");
constexpr size_t kComputeStages[] = {StageNamed("read_wait"), StageNamed("pull_wait"),
                                     StageNamed("compute"),   StageNamed("reduce_dense"),
                                     StageNamed("keep"),      StageNamed("push_wait")};
// A worker that is slow itself makes the others wait in these.
constexpr size_t kWaits[] = {StageNamed("pull_wait"), StageNamed("reduce_dense"),
                             StageNamed("push_wait")};
static_assert(kTotal < kStageLabels.size());

constexpr FigureId kStages = FigureNamed("hdps_worker_stage_seconds_total");
constexpr FigureId kSteps = FigureNamed("hdps_worker_step_seconds");
constexpr FigureId kPulls = FigureNamed("hdps_server_pull_seconds");

}  // namespace

std::span<const size_t> ComputeStages() { return kComputeStages; }

uint64_t MemberPace::CountIn(const Readings& readings) const {
  const FigureId histogram = layout_.role() == FigureRole::kWorker ? kSteps : kPulls;
  const auto first = readings.begin() + static_cast<ptrdiff_t>(layout_.OffsetOf(histogram));
  const auto buckets = static_cast<ptrdiff_t>(BoundsOf(RecordOf(histogram)).size() + 1);
  return std::accumulate(first, first + buckets, uint64_t{0});
}

double MemberPace::OwnTotal(const Readings& readings) const {
  if (layout_.role() != FigureRole::kWorker) {
    const size_t sum = layout_.OffsetOf(kPulls) + BoundsOf(RecordOf(kPulls)).size() + 1;
    return static_cast<double>(readings[sum]) / kNsPerSecond;
  }
  const size_t stages = layout_.OffsetOf(kStages);
  auto own = static_cast<double>(readings[stages + kTotal]);
  for (const size_t wait : kWaits) own -= static_cast<double>(readings[stages + wait]);
  return own / kNsPerSecond;
}

void MemberPace::Take(TimeMs now, const std::shared_ptr<const Readings>& readings) {
  if (readings == nullptr || !Matches(*readings)) return;
  // A process that took the place of another one begins with zero.
  const bool newer = kept_.empty() || CountIn(*readings) >= CountIn(*kept_.back().readings);
  if (!newer) {
    kept_.clear();
    judged_count_ = slow_count_ = 0;
  }
  if (!kept_.empty() && CountIn(*readings) == CountIn(*kept_.back().readings)) return;
  // The newest readings take the place of those that are not a second older than others.
  if (kept_.size() >= 2 && kept_.back().at - kept_[kept_.size() - 2].at < kKeepEveryMs) {
    kept_.pop_back();
  }
  kept_.push_back({now, readings});
  while (kept_.size() > 2 && now - kept_[1].at >= kWindowMs) kept_.pop_front();
}

uint64_t MemberPace::count() const { return kept_.empty() ? 0 : CountIn(*kept_.back().readings); }

std::vector<double> MemberPace::StageSeconds() const {
  if (kept_.empty() || layout_.role() != FigureRole::kWorker) return {};
  const size_t stages = layout_.OffsetOf(kStages);
  const Readings& now = *kept_.back().readings;
  const auto seconds = [&](size_t stage) {
    const uint64_t before = kept_.size() == 1 ? 0 : (*kept_.front().readings)[stages + stage];
    return static_cast<double>(now[stages + stage] - before) / kNsPerSecond;
  };
  std::vector<double> parts;
  for (const size_t stage : kComputeStages) parts.push_back(seconds(stage));
  const double listed = std::accumulate(parts.begin(), parts.end(), 0.0);
  parts.push_back(std::max(0.0, seconds(kTotal) - listed));
  return parts;
}

double MemberPace::OwnSeconds() const {
  if (kept_.empty()) return 0;
  const Readings& now = *kept_.back().readings;
  const double total = OwnTotal(now);
  if (kept_.size() == 1) return total / static_cast<double>(std::max<uint64_t>(CountIn(now), 1));
  const Readings& before = *kept_.front().readings;
  return (total - OwnTotal(before)) / static_cast<double>(CountIn(now) - CountIn(before));
}

void MemberPace::Judge(double median) {
  const double own = OwnSeconds();
  ratio_ = median > 0 ? own / median : 0;
  const uint64_t steps = count() - judged_count_;
  judged_count_ = count();
  slow_count_ = ratio_ > kSlowRatio ? slow_count_ + steps : 0;
}

double LowerMedian(std::vector<double> values) {
  std::erase(values, 0.0);
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace hdps
