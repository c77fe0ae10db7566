// Turns readings into samples, and adds and summarizes them.
#include "common/telemetry/samples.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

namespace hdps {
namespace {

constexpr double kNsPerSecond = 1e9;

double InUnit(FigureUnit unit, double counted) {
  return unit == FigureUnit::kSeconds ? counted / kNsPerSecond : counted;
}

std::vector<std::pair<std::string, std::string>> LabelsAt(FigureLabels labels, size_t index,
                                                          const std::vector<std::string>& names) {
  switch (labels) {
    case FigureLabels::kStage:
      return {{"stage", std::string(kStageLabels[index])}};
    case FigureLabels::kDirection:
      return {{"direction", std::string(kDirectionLabels[index])}};
    case FigureLabels::kTable:
      return {{"table", names[index]}};
    case FigureLabels::kTableTier:
      return {{"table", names[index / kTierLabels.size()]},
              {"tier", std::string(kTierLabels[index % kTierLabels.size()])}};
    case FigureLabels::kFeature:
      return {{"feature", names[index]}};
    case FigureLabels::kProtocol:
      return {{"protocol", std::string(kProtocolLabels[index])}};
    case FigureLabels::kCode:
      return {{"code", std::string(kCodeLabels[index])}};
    case FigureLabels::kRefresh:
      return {{"kind", std::string(kRefreshLabels[index])}};
    case FigureLabels::kRefusal:
      return {{"reason", std::string(kRefusalLabels[index])}};
    case FigureLabels::kNone:
    case FigureLabels::kMember:
    case FigureLabels::kEvaluation:
    case FigureLabels::kShard:
      break;
  }
  return {};
}

Sample SampleAt(FigureId id, std::span<const uint64_t> numbers) {
  const FigureRecord& record = RecordOf(id);
  Sample sample{.figure = id};
  switch (record.kind) {
    case FigureKind::kCounter:
      sample.value = InUnit(record.unit, static_cast<double>(numbers[0]));
      break;
    case FigureKind::kGauge:
      sample.value = std::bit_cast<double>(numbers[0]);
      break;
    case FigureKind::kHistogram:
      sample.buckets.assign(numbers.begin(), numbers.end() - 1);
      sample.sum = InUnit(record.unit, static_cast<double>(numbers.back()));
      break;
  }
  return sample;
}

constexpr FigureId kLoss = FigureNamed("hdps_worker_loss");

// Returns the mean of both losses, weighted by the examples; that of `sum` if neither has any.
double MeanLoss(const FigureLayout& layout, std::span<const uint64_t> more,
                std::span<const uint64_t> sum) {
  const size_t loss = layout.OffsetOf(kLoss);
  if (loss == FigureLayout::kNone) return 0;
  const size_t examples = layout.OffsetOf(FigureNamed("hdps_worker_examples_total"));
  const auto of_more = static_cast<double>(more[examples]);
  const auto of_sum = static_cast<double>(sum[examples]);
  const auto before = std::bit_cast<double>(sum[loss]);
  if (of_more + of_sum == 0) return before;
  return before + (std::bit_cast<double>(more[loss]) - before) * (of_more / (of_more + of_sum));
}

}  // namespace

std::vector<Sample> SamplesOf(const FigureLayout& layout, std::span<const uint64_t> readings,
                              const std::vector<std::string>& names) {
  if (readings.size() != layout.size() || names.size() != layout.num_names()) return {};
  const size_t start = layout.OffsetOf(FigureNamed("process_start_time_seconds"));
  std::vector<Sample> samples;
  for (uint16_t i = 0; i < kFigures.size(); ++i) {
    const FigureId id = {i};
    const size_t offset = layout.OffsetOf(id);
    if (offset == FigureLayout::kNone) continue;
    const FigureRecord& record = RecordOf(id);
    if (record.role == FigureRole::kProcess && readings[start] == 0) continue;
    const size_t width = FigureLayout::WidthOf(record);
    for (size_t label = 0; label < layout.LabelsOf(id); ++label) {
      samples.push_back(SampleAt(id, readings.subspan(offset + label * width, width)));
      samples.back().labels = LabelsAt(record.labels, label, names);
    }
  }
  return samples;
}

void AddReadings(const FigureLayout& layout, std::span<const uint64_t> more, Readings* sum) {
  if (more.empty()) return;
  if (sum->empty()) {
    sum->assign(more.begin(), more.end());
    return;
  }
  const double loss = MeanLoss(layout, more, *sum);
  for (uint16_t i = 0; i < kFigures.size(); ++i) {
    const FigureRecord& record = RecordOf({i});
    const size_t offset = layout.OffsetOf({i});
    if (offset == FigureLayout::kNone) continue;
    const size_t count = layout.LabelsOf({i}) * FigureLayout::WidthOf(record);
    for (size_t at = offset; at < offset + count; ++at) {
      uint64_t& total = (*sum)[at];
      if (record.role == FigureRole::kProcess) {
        total = 0;
      } else if (record.kind != FigureKind::kGauge) {
        total += more[at];
      } else {
        const double added = std::bit_cast<double>(total) + std::bit_cast<double>(more[at]);
        total = std::bit_cast<uint64_t>(FigureId{i} == kLoss ? loss : added);
      }
    }
  }
}

uint64_t CountOf(const Sample& histogram) {
  return std::accumulate(histogram.buckets.begin(), histogram.buckets.end(), uint64_t{0});
}

double QuantileOf(const Sample& histogram, double share) {
  const uint64_t count = CountOf(histogram);
  if (count == 0) return std::numeric_limits<double>::quiet_NaN();
  const FigureRecord& record = RecordOf(histogram.figure);
  const std::span<const int64_t> bounds = BoundsOf(record);
  const double wanted = share * static_cast<double>(count);
  double below = 0;
  for (size_t i = 0; i < bounds.size(); ++i) {
    const auto here = static_cast<double>(histogram.buckets[i]);
    if (here > 0 && below + here >= wanted) {
      const double from = i == 0 ? 0 : static_cast<double>(bounds[i - 1]);
      const double part = std::max(0.0, wanted - below) / here;
      return InUnit(record.unit, from + part * (static_cast<double>(bounds[i]) - from));
    }
    below += here;
  }
  return InUnit(record.unit, static_cast<double>(bounds.back()));
}

}  // namespace hdps
