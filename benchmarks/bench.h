// What a benchmark is: one question, answered by figures that were each measured several times.
#pragma once

#include <string>
#include <vector>

#include "common/file_system.h"
#include "common/monotonic_clock.h"
#include "common/status.h"

namespace hdps {

struct BenchSetting {
  FileSystem* files = nullptr;
  MonotonicClock* clock = nullptr;
  std::string scratch;  // An empty folder; removed afterwards.
  int threads = 0;      // 0 = one a core.
  int repeats = 3;      // Samples a figure should have.
};

struct Figure {
  std::string name;  // With its unit last: "examples_per_s", "pull_ms".
  std::vector<double> samples;
};
double Median(std::vector<double> samples);

struct BenchReport {
  std::vector<Figure> figures;
  std::vector<std::string> remarks;  // Lines for people: what was run, how to read the figures.
};

struct Benchmark {
  const char* name;
  const char* question;
  Result<BenchReport> (*run)(const BenchSetting& setting);
};

// One a file.
extern const Benchmark kEndToEndBenchmark;
extern const Benchmark kReaderBenchmark;

}  // namespace hdps
