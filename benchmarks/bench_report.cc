// Medians, a table for people and JSON for programs.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "benchmarks/bench.h"
#include "common/monotonic_clock.h"

namespace hdps {
namespace {

// Between the two samples next to the place.
double QuantileOf(std::vector<double> samples, double quantile) {
  std::sort(samples.begin(), samples.end());
  const double place = quantile * static_cast<double>(samples.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, samples.size() - 1);
  const double share = place - static_cast<double>(below);
  return samples[below] * (1 - share) + samples[above] * share;
}

std::string Padded(const std::string& text, size_t width) {
  return text.size() < width ? text + std::string(width - text.size(), ' ') : text;
}

std::string Shown(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

}  // namespace

double MedianOf(std::vector<double> samples) { return QuantileOf(std::move(samples), 0.5); }

double SpreadOf(std::vector<double> samples) {
  const double median = QuantileOf(samples, 0.5);
  if (median == 0) return 0;
  return (QuantileOf(samples, 0.75) - QuantileOf(samples, 0.25)) / median;
}

void BenchReport::Add(BenchResult result) { results_.push_back(std::move(result)); }

void BenchReport::Add(const std::string& bench, const std::string& name, const std::string& figure,
                      const std::string& unit, const std::vector<double>& samples) {
  BenchResult result;
  result.bench = bench;
  result.name = name;
  result.figure = figure;
  result.unit = unit;
  result.median = MedianOf(samples);
  result.spread = SpreadOf(samples);
  Add(std::move(result));
}

void BenchReport::AddBeside(const std::string& bench, const std::string& name,
                            const std::string& figure, const std::string& unit,
                            const std::vector<double>& samples, const std::string& yardstick,
                            const std::vector<double>& yardstick_samples) {
  Add(bench, name, figure, unit, samples);
  results_.back().yardstick = yardstick;
  results_.back().yardstick_value = MedianOf(yardstick_samples);
}

std::string BenchReport::Table() const {
  std::string table = Padded("bench", 12) + Padded("case", 28) + Padded("figure", 16) +
                      Padded("median", 14) + Padded("unit", 12) + Padded("spread", 9) +
                      "ratio to yardstick\n";
  for (const BenchResult& result : results_) {
    table += Padded(result.bench, 12) + Padded(result.name, 28) + Padded(result.figure, 16) +
             Padded(Shown("%.4g", result.median), 14) + Padded(result.unit, 12) +
             Padded(Shown("%.0f %%", 100 * result.spread), 9);
    if (!result.yardstick.empty()) {
      table += Shown("%.3f", result.ratio()) + " of " + result.yardstick + " (" +
               Shown("%.4g", result.yardstick_value) + ")";
    }
    table += '\n';
  }
  return table;
}

std::string BenchReport::Json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const BenchResult& result : results_) {
    nlohmann::json object = {{"bench", result.bench},   {"case", result.name},
                             {"figure", result.figure}, {"value", result.median},
                             {"spread", result.spread}, {"unit", result.unit}};
    if (!result.yardstick.empty()) {
      object["yardstick"] = result.yardstick;
      object["yardstick_value"] = result.yardstick_value;
      object["ratio"] = result.ratio();
    }
    list.push_back(std::move(object));
  }
  return list.dump(2);
}

double SecondsOf(const std::function<void()>& work) {
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  const int64_t begin_ns = clock->NowNs();
  work();
  return static_cast<double>(clock->NowNs() - begin_ns) * 1e-9;
}

}  // namespace hdps
