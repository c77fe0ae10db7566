// What a benchmark is, what it reports into, and the list of all of them.
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

// One figure of one case. A figure means something next year only beside a yardstick: what the same
// machine does in the same run with the same bytes at its simplest.
struct BenchResult {
  std::string bench;                      // "reader"
  std::string name;                       // Of the case: "criteo_tsv"
  std::string figure;                     // "parse"
  std::string unit;                       // "MB/s"
  std::vector<double> samples;            // One a repeat, in the order they were measured.
  std::string yardstick;                  // What `ratio` compares with; empty: nothing.
  std::vector<double> yardstick_samples;  // In the same unit, measured in turns with `samples`.
  double foreign_cores = 0;  // CPU that others used meanwhile, in cores: how far to trust it.

  double median() const;
  // Distance of the quartiles over the median; 0 for a single repeat.
  double spread() const;
  double yardstick_median() const;  // 0 without a yardstick.
  // Median of the ratios of each turn when figure and yardstick were measured in turns, else the
  // ratio of the medians: noise that hits both alike cancels. 0 without a yardstick.
  double ratio() const;
};

// The middle of `samples` and how far they lie apart. Requires: not empty.
double MedianOf(const std::vector<double>& samples);
double SpreadOf(const std::vector<double>& samples);
// Between the two samples next to the place; `quantile` in [0, 1]. Requires: not empty.
double QuantileOf(std::vector<double> samples, double quantile);
// The place of each in ascending order, from 1; values that are equal share the mean of theirs.
std::vector<double> RanksOf(const std::vector<double>& values);
// Spearman's: the correlation of the ranks, in [-1, 1]; 0 where one side's values are all equal.
// Requires: as many on both sides.
double RankCorrelation(const std::vector<double>& a, const std::vector<double>& b);

// Results in the order they came. A result given with samples says how much CPU others used since
// the result before it that took time, or since the benchmark began.
class BenchReport {
 public:
  // How many cores others kept busy since it was last asked; below 0: too short to tell.
  using ForeignCores = std::function<double()>;
  explicit BenchReport(ForeignCores foreign_cores = {})
      : foreign_cores_(std::move(foreign_cores)) {}

  void Add(BenchResult result);
  // A result from its repeats.
  void Add(const std::string& bench, const std::string& name, const std::string& figure,
           const std::string& unit, const std::vector<double>& samples);
  // The same beside a yardstick measured in turns with it.
  void AddBeside(const std::string& bench, const std::string& name, const std::string& figure,
                 const std::string& unit, const std::vector<double>& samples,
                 const std::string& yardstick, const std::vector<double>& yardstick_samples);

  const std::vector<BenchResult>& results() const { return results_; }
  // A line a result, in columns.
  std::string Table() const;
  // A list of objects, for the harness to put beside the machine and the commit.
  std::string Json() const;

 private:
  ForeignCores foreign_cores_;
  double last_foreign_cores_ = 0;
  std::vector<BenchResult> results_;
};

// What the operator asked for, the same for every benchmark.
struct BenchSetting {
  std::string program;         // This executable, to start members of a cluster as processes.
  std::string scratch;         // An empty folder of the benchmark's own, removed after it.
  int threads = 0;             // 0 = one a core.
  int repeats = 5;             // Samples of each figure.
  bool quick = false;          // Half the sizes or less: to see that it runs, or on a slow machine.
  std::string only;            // Cases whose name has this inside; empty: all.
  std::string device = "cpu";  // Of the dense layers: cpu or cuda.
  std::vector<std::string> overrides;  // Of the jobs that end_to_end trains: "key.path=value".
  std::string data;  // A Criteo TSV file of the operator's, for `reader`; may be empty.

  bool Wants(const std::string& name) const { return name.find(only) != std::string::npos; }
};

// Seconds that `work` takes on the monotonic clock.
double SecondsOf(const std::function<void()>& work);
// Seconds of CPU that the calling thread has used: what a figure costs where the machine is shared.
double ThreadCpuSeconds();
// Seconds of CPU that all threads of this process have used.
double ProcessCpuSeconds();
// Each of `works` gives one sample; they are run in turns so that noise hits all alike. Gives
// [works][repeats].
std::vector<std::vector<double>> InTurns(int repeats,
                                         std::initializer_list<std::function<double()>> works);
// A line on stderr for who waits: "reader: criteo_tsv_shuffled".
void SayProgress(const std::string& bench, const std::string& text);

struct BenchEntry {
  const char* name;
  const char* question;
  Status (*run)(const BenchSetting&, FileSystem&, BenchReport&);
};
// All benchmarks; to add one, write <name>_bench.cc and its line in bench_list.cc.
std::span<const BenchEntry> AllBenches();

}  // namespace hdps
