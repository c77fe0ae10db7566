// Defines a benchmark, the report it writes into, and the list of all benchmarks.
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

// One figure of one case. Next year it means something only beside a yardstick: the simplest
// operation on the same bytes, measured on the same machine in the same run.
struct BenchResult {
  std::string bench;   // "reader"
  std::string name;    // Name of the case: "criteo_tsv".
  std::string figure;  // "parse"
  std::string unit;    // "MB/s"
  // One per repeat, in the order of measuring.
  std::vector<double> samples;
  std::string yardstick;  // Name of the yardstick that `ratio` compares with; empty: none.
  // In the same unit, measured in turns with `samples`.
  std::vector<double> yardstick_samples;
  // CPU that other processes used meanwhile, in cores; the higher, the less reliable the figure.
  double foreign_cores = 0;

  double median() const;
  // Returns the distance of the quartiles over the median; 0 for a single repeat.
  double spread() const;
  double yardstick_median() const;  // 0 without a yardstick.
  // Returns the median of the ratios of each turn if figure and yardstick were measured in turns,
  // so that noise which hits both cancels. Otherwise returns the ratio of the medians; 0 without a
  // yardstick.
  double ratio() const;
};

// Return the median of `samples`, and the distance of their quartiles over it. Requires: not empty.
double MedianOf(const std::vector<double>& samples);
double SpreadOf(const std::vector<double>& samples);
// Interpolates linearly between the two nearest samples; `quantile` in [0, 1]. Requires: not empty.
double QuantileOf(std::vector<double> samples, double quantile);
// Returns the rank of each value in ascending order, from 1; equal values share their mean rank.
std::vector<double> RanksOf(const std::vector<double>& values);
// Returns Spearman's rank correlation, in [-1, 1]; 0 if all values of one side are equal. Requires:
// both sides have the same size.
double RankCorrelation(const std::vector<double>& a, const std::vector<double>& b);

// Collects results in order. A result given by its samples records how much CPU other processes
// used since the previous result that took time, or since the benchmark began.
class BenchReport {
 public:
  // Returns how many cores other processes kept busy since the last call; below 0: the time was too
  // short.
  using ForeignCores = std::function<double()>;
  explicit BenchReport(ForeignCores foreign_cores = {})
      : foreign_cores_(std::move(foreign_cores)) {}

  void Add(BenchResult result);
  // Adds a result from its repeats.
  void Add(const std::string& bench, const std::string& name, const std::string& figure,
           const std::string& unit, const std::vector<double>& samples);
  // Adds a result beside a yardstick that was measured in turns with it.
  void AddBeside(const std::string& bench, const std::string& name, const std::string& figure,
                 const std::string& unit, const std::vector<double>& samples,
                 const std::string& yardstick, const std::vector<double>& yardstick_samples);

  const std::vector<BenchResult>& results() const { return results_; }
  // Returns one line per result, in columns.
  std::string Table() const;
  // Returns a list of objects; the harness puts the machine and the commit beside it.
  std::string Json() const;

 private:
  ForeignCores foreign_cores_;
  double last_foreign_cores_ = 0;
  std::vector<BenchResult> results_;
};

// The operator's settings, the same for every benchmark.
struct BenchSetting {
  std::string program;  // Path of this executable, to start members of a cluster.
  // Empty folder for this benchmark, removed after it.
  std::string scratch;
  int threads = 0;  // 0: one per core.
  int repeats = 5;  // Samples of each figure.
  // Half the sizes or less: for a trial run or a slow machine.
  bool quick = false;
  std::string only;            // Runs only cases with this text in their name; empty: all.
  std::string device = "cpu";  // Device of the dense layers: cpu or cuda.
  // Settings of the jobs that end_to_end trains: "key.path=value".
  std::vector<std::string> overrides;
  std::string data;  // Criteo TSV file of the operator, for `reader`; may be empty.

  bool Wants(const std::string& name) const { return name.find(only) != std::string::npos; }
};

// Returns the seconds that `work` takes on the monotonic clock.
double SecondsOf(const std::function<void()>& work);
// Returns the CPU seconds of the calling thread, which other load on the machine hardly changes.
double ThreadCpuSeconds();
// Returns the CPU seconds of all threads of this process.
double ProcessCpuSeconds();
// Runs `works` in turns, so that noise hits all alike; each returns one sample. Returns
// [works][repeats].
std::vector<std::vector<double>> InterleavedSamples(
    int repeats, std::initializer_list<std::function<double()>> works);
// Prints a line of progress on stderr: "reader: criteo_tsv_shuffled".
void PrintProgress(const std::string& bench, const std::string& text);

struct BenchEntry {
  const char* name;
  const char* question;
  Status (*run)(const BenchSetting&, FileSystem&, BenchReport&);
};
// Lists all benchmarks. To add one, write <name>_bench.cc and its line in bench_list.cc.
std::span<const BenchEntry> AllBenches();

}  // namespace hdps
