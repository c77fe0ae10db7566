// Sorts the latencies, of the whole plan and of each of its seconds.
#include "benchmarks/serving/load_figures.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "benchmarks/bench.h"

namespace hdps {

namespace {

using Json = nlohmann::ordered_json;

// Returns the smallest value that at least this share of the values does not exceed.
double QuantileMs(const std::vector<int64_t>& sorted_ns, double share) {
  if (sorted_ns.empty()) return 0;
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted_ns.size())));
  return static_cast<double>(sorted_ns[std::max<size_t>(rank, 1) - 1]) * 1e-6;
}

bool IsAnswered(const LoadSample& sample) { return sample.status == 200; }

// Adds the lowest rate and the highest latency that any second has, by the times at which its
// requests were due.
void AddWorstSecond(const LoadPlan& plan, const LoadReport& report, double rows, Json* figures) {
  const auto seconds = static_cast<size_t>(plan.seconds);
  std::vector<std::vector<int64_t>> latencies(seconds);
  for (const LoadSample& sample : report.samples) {
    const auto second = static_cast<size_t>(sample.due_ns / 1'000'000'000);
    if (IsAnswered(sample) && second < seconds)
      latencies[second].push_back(sample.answered_ns - sample.due_ns);
  }
  double least_rows = 0, most_ms = 0;
  for (size_t second = 0; second < seconds; ++second) {
    std::vector<int64_t>& of_second = latencies[second];
    std::sort(of_second.begin(), of_second.end());
    const double of_rows = rows * static_cast<double>(of_second.size());
    least_rows = second == 0 ? of_rows : std::min(least_rows, of_rows);
    most_ms = std::max(most_ms, QuantileMs(of_second, 0.99));
  }
  (*figures)["worst_second"] = {{"rows", least_rows}, {"p99_ms", most_ms}};
}

}  // namespace

std::string LoadFigures(const LoadPlan& plan, const LoadReport& report, double rows) {
  std::vector<int64_t> latencies, late;
  int64_t last_ns = 0;
  for (const LoadSample& sample : report.samples) {
    if (!IsAnswered(sample)) continue;
    latencies.push_back(sample.answered_ns - sample.due_ns);
    late.push_back(sample.sent_ns - sample.due_ns);
    last_ns = std::max(last_ns, sample.answered_ns);
  }
  std::sort(latencies.begin(), latencies.end());
  std::sort(late.begin(), late.end());
  const double seconds = std::max(plan.seconds, static_cast<double>(last_ns) * 1e-9);
  Json figures = {{"requests", report.samples.size()},
                  {"answered", latencies.size()},
                  {"seconds", seconds},
                  {"rows_a_second", rows * static_cast<double>(latencies.size()) / seconds},
                  {"p50_ms", QuantileMs(latencies, 0.5)},
                  {"p99_ms", QuantileMs(latencies, 0.99)},
                  {"p999_ms", QuantileMs(latencies, 0.999)},
                  {"max_ms", QuantileMs(latencies, 1)},
                  {"sent_late_p99_ms", QuantileMs(late, 0.99)}};
  AddWorstSecond(plan, report, rows, &figures);
  figures["failures"] = Json::object();
  for (const auto& [reason, times] : report.failures) figures["failures"][reason] = times;
  if (!report.first_failure.empty()) figures["first_failure"] = report.first_failure;
  figures["changed_answers"] = report.changed_answers;
  figures["versions"] = Json::object();
  for (const auto& [version, seen] : report.versions)
    figures["versions"][version] = {{"answers", seen.answers}, {"first_seen", seen.first_seen}};
  figures["own_cpu_seconds"] = ProcessCpuSeconds();
  return figures.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hdps
