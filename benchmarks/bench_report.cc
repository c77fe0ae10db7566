// Computes medians, and formats results as a table and as JSON.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "benchmarks/bench.h"
#include "common/base/show_number.h"
#include "common/platform/monotonic_clock.h"

namespace hdps {
namespace {

// Shows 21550 as "21,550" and 0.1234 as "0.1234": four digits, or all before the point.
std::string Number(double value) {
  return value < 1000 ? ShowNumber("%.4g", value) : ShowWhole(value);
}

}  // namespace

double QuantileOf(std::vector<double> samples, double quantile) {
  std::sort(samples.begin(), samples.end());
  const double place = quantile * static_cast<double>(samples.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, samples.size() - 1);
  const double share = place - static_cast<double>(below);
  return samples[below] * (1 - share) + samples[above] * share;
}

double MedianOf(const std::vector<double>& samples) { return QuantileOf(samples, 0.5); }

double SpreadOf(const std::vector<double>& samples) {
  const double median = QuantileOf(samples, 0.5);
  if (median == 0) return 0;
  return (QuantileOf(samples, 0.75) - QuantileOf(samples, 0.25)) / median;
}

std::vector<double> RanksOf(const std::vector<double>& values) {
  std::vector<double> ranks;
  for (const double value : values) {
    const auto less = std::ranges::count_if(values, [&](double other) { return other < value; });
    const auto equal = std::ranges::count(values, value);
    ranks.push_back(static_cast<double>(less) + static_cast<double>(equal + 1) / 2);
  }
  return ranks;
}

double RankCorrelation(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> ranks_a = RanksOf(a), ranks_b = RanksOf(b);
  const double mean = static_cast<double>(a.size() + 1) / 2;
  double both = 0, of_a = 0, of_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = ranks_a[i] - mean, y = ranks_b[i] - mean;
    both += x * y;
    of_a += x * x;
    of_b += y * y;
  }
  return of_a == 0 || of_b == 0 ? 0 : both / std::sqrt(of_a * of_b);
}

double BenchResult::median() const { return MedianOf(samples); }
double BenchResult::spread() const { return SpreadOf(samples); }

double BenchResult::yardstick_median() const {
  return yardstick_samples.empty() ? 0 : MedianOf(yardstick_samples);
}

double BenchResult::ratio() const {
  if (yardstick_samples.size() != samples.size()) {
    return yardstick_median() == 0 ? 0 : median() / yardstick_median();
  }
  std::vector<double> ratios;
  for (size_t turn = 0; turn < samples.size(); ++turn) {
    if (yardstick_samples[turn] == 0) return 0;
    ratios.push_back(samples[turn] / yardstick_samples[turn]);
  }
  return MedianOf(ratios);
}

void BenchReport::Add(BenchResult result) {
  const double foreign = foreign_cores_ ? foreign_cores_() : 0;
  if (foreign >= 0) last_foreign_cores_ = foreign;
  result.foreign_cores = last_foreign_cores_;
  results_.push_back(std::move(result));
}

void BenchReport::Add(const std::string& bench, const std::string& name, const std::string& figure,
                      const std::string& unit, const std::vector<double>& samples) {
  AddBeside(bench, name, figure, unit, samples, "", {});
}

void BenchReport::AddBeside(const std::string& bench, const std::string& name,
                            const std::string& figure, const std::string& unit,
                            const std::vector<double>& samples, const std::string& yardstick,
                            const std::vector<double>& yardstick_samples) {
  BenchResult result;
  result.bench = bench;
  result.name = name;
  result.figure = figure;
  result.unit = unit;
  result.samples = samples;
  result.yardstick = yardstick;
  result.yardstick_samples = yardstick_samples;
  Add(std::move(result));
}

std::string BenchReport::Table() const {
  std::vector<std::vector<std::string>> rows = {
      {"bench", "case", "figure", "median", "unit", "spread", "others", "ratio to yardstick"}};
  for (const BenchResult& result : results_) {
    std::string beside;
    if (!result.yardstick.empty()) {
      beside = ShowNumber("%.3f", result.ratio()) + " of " + result.yardstick + " (" +
               Number(result.yardstick_median()) + ")";
    }
    rows.push_back({result.bench, result.name, result.figure, Number(result.median()), result.unit,
                    ShowNumber("%.0f %%", 100 * result.spread()),
                    ShowNumber("%.2f", result.foreign_cores), beside});
  }
  std::vector<size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  const auto is_number = [](size_t column) { return column == 3 || column == 5 || column == 6; };
  std::string table;
  for (const auto& row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string blanks(widths[c] - row[c].size(), ' ');
      line += (c == 0 ? "" : "  ") + (is_number(c) ? blanks + row[c] : row[c] + blanks);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    table += line + "\n";
  }
  return table;
}

std::string BenchReport::Json() const {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const BenchResult& result : results_) {
    nlohmann::ordered_json object = {{"bench", result.bench},     {"case", result.name},
                                     {"figure", result.figure},   {"value", result.median()},
                                     {"spread", result.spread()}, {"unit", result.unit},
                                     {"samples", result.samples}};
    if (!result.yardstick.empty()) {
      object["yardstick"] = result.yardstick;
      object["yardstick_value"] = result.yardstick_median();
      object["yardstick_samples"] = result.yardstick_samples;
      object["ratio"] = result.ratio();
    }
    object["foreign_cores"] = result.foreign_cores;
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

double ThreadCpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::vector<std::vector<double>> InterleavedSamples(
    int repeats, std::initializer_list<std::function<double()>> works) {
  std::vector<std::vector<double>> samples(works.size());
  for (int repeat = 0; repeat < repeats; ++repeat) {
    size_t at = 0;
    for (const std::function<double()>& work : works) samples[at++].push_back(work());
  }
  return samples;
}

void PrintProgress(const std::string& bench, const std::string& text) {
  std::fprintf(stderr, "%s: %s\n", bench.c_str(), text.c_str());
}

}  // namespace hdps
