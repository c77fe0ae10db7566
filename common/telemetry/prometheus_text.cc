// Writes samples by the serializer of prometheus-cpp.
#include "common/telemetry/prometheus_text.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <limits>
#include <span>
#include <utility>

namespace hdps {
namespace {

constexpr double kNsPerSecond = 1e9;

prometheus::MetricType TypeOf(FigureKind kind) {
  switch (kind) {
    case FigureKind::kCounter:
      return prometheus::MetricType::Counter;
    case FigureKind::kGauge:
      return prometheus::MetricType::Gauge;
    case FigureKind::kHistogram:
      return prometheus::MetricType::Histogram;
  }
  return prometheus::MetricType::Untyped;
}

prometheus::ClientMetric::Histogram HistogramOf(const Sample& sample) {
  const FigureRecord& record = RecordOf(sample.figure);
  const double scale = record.unit == FigureUnit::kSeconds ? kNsPerSecond : 1;
  const std::span<const int64_t> bounds = BoundsOf(record);
  prometheus::ClientMetric::Histogram histogram;
  for (size_t i = 0; i < sample.buckets.size(); ++i) {
    histogram.sample_count += sample.buckets[i];
    const double bound = i < bounds.size() ? static_cast<double>(bounds[i]) / scale
                                           : std::numeric_limits<double>::infinity();
    histogram.bucket.push_back({histogram.sample_count, bound});
  }
  histogram.sample_sum = sample.sum;
  return histogram;
}

prometheus::ClientMetric MetricOf(const Sample& sample) {
  prometheus::ClientMetric metric;
  for (const auto& [name, value] : sample.labels) metric.label.push_back({name, value});
  switch (RecordOf(sample.figure).kind) {
    case FigureKind::kCounter:
      metric.counter.value = sample.value;
      break;
    case FigureKind::kGauge:
      metric.gauge.value = sample.value;
      break;
    case FigureKind::kHistogram:
      metric.histogram = HistogramOf(sample);
      break;
  }
  return metric;
}

bool HasFreeLabels(const FigureRecord& record) {
  return record.labels == FigureLabels::kMember || record.labels == FigureLabels::kEvaluation ||
         record.labels == FigureLabels::kShard;
}

prometheus::MetricFamily BuildInfo() {
  prometheus::ClientMetric metric;
  metric.label = {{"version", HDPS_VERSION}, {"compiler", __VERSION__}};
  metric.gauge.value = 1;
  return {"hdps_build_info",
          "What this program is; the value is always 1",
          prometheus::MetricType::Gauge,
          {std::move(metric)}};
}

}  // namespace

std::string PrometheusText(const std::vector<Sample>& samples) {
  std::vector<prometheus::MetricFamily> families(kFigures.size());
  for (const Sample& sample : samples) {
    const FigureRecord& record = RecordOf(sample.figure);
    prometheus::MetricFamily& family = families[sample.figure.index];
    if (HasFreeLabels(record) && family.metric.size() == kFreeSeriesMax) continue;
    if (family.metric.empty()) {
      family.name = record.name;
      family.help = record.help;
      family.type = TypeOf(record.kind);
    }
    family.metric.push_back(MetricOf(sample));
  }
  std::erase_if(families, [](const auto& family) { return family.metric.empty(); });
  families.push_back(BuildInfo());
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace hdps
