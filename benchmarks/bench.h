// What every benchmark reports into, and the list of benchmarks.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/file_system.h"
#include "common/status.h"

namespace hdps {

// One figure of one case. A figure means something next year only beside a yardstick: what the same
// machine does in the same run with the same bytes at its simplest.
struct BenchResult {
  std::string bench;           // "reader"
  std::string name;            // Of the case: "criteo_tsv"
  std::string figure;          // "parse"
  double median = 0;           // Over the repeats.
  double spread = 0;           // Distance of the quartiles over the median; 0 for a single repeat.
  std::string unit;            // "MB/s"
  std::string yardstick;       // What `ratio` compares with; empty: nothing.
  double yardstick_value = 0;  // In the same unit.
  double ratio() const { return yardstick_value != 0 ? median / yardstick_value : 0; }
};

// The middle of `samples` and how far they lie apart. Requires: not empty.
double MedianOf(std::vector<double> samples);
double SpreadOf(std::vector<double> samples);

// Results in the order they came.
class BenchReport {
 public:
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
  std::vector<BenchResult> results_;
};

// Seconds that `work` takes on the monotonic clock.
double SecondsOf(const std::function<void()>& work);

// The benchmarks, each in <name>_bench.cc.
void RunReaderBench(BenchReport& report);

struct EndToEndSetting {
  std::string scratch;  // An empty folder for data and runs.
  int threads = 0;      // 0 = one a core.
  int repeats = 3;
  std::string device = "cpu";  // Of the dense layers: cpu or cuda.
};
Status RunEndToEndBench(const EndToEndSetting& setting, FileSystem& files, BenchReport& report);

}  // namespace hdps
