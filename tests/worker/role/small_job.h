// A small Wide&Deep job, trained whole in one process over files in memory.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/base/exit_status.h"
#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "common/platform/random.h"
#include "worker/step/step_trace.h"

namespace hdps {

inline constexpr int kTracedSteps = 5;

struct ClusterSize {
  uint32_t workers = 1, servers = 1;
};

using Overrides = std::vector<std::string>;  // "key.path=value"
inline Overrides operator+(Overrides a, const Overrides& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// The ids of features a and b in one row of the data.
using DrawIds = std::function<std::pair<uint64_t, uint64_t>(Random& random, uint64_t row)>;
// `count` rows: the label, which a decides mostly, a number, a, and b with a second key beside it
// in every other row.
std::string SmallRows(uint64_t count, uint64_t seed, const DrawIds& draw);

// The job is job.json, over train.csv and eval.csv; a test may write them anew.
class SmallJobTest : public testing::Test {
 protected:
  // `always`: what every run overrides, before what it says itself.
  SmallJobTest(Overrides always, const std::string& train, const std::string& eval);

  // Into out(), or a folder of its own.
  ProcessEnd RunJob(const ClusterSize& cluster, const Overrides& overrides);
  ProcessEnd RunJobInto(const std::string& out, const ClusterSize& cluster,
                        const Overrides& overrides);
  // Why a job is refused, or ends as the operator's mistake; empty: it is not.
  std::string Refusal(const ClusterSize& cluster, const Overrides& overrides);
  // The same for a job that has to end well; gives its summary.
  nlohmann::json Summary(const ClusterSize& cluster, const Overrides& overrides);
  nlohmann::json SummaryInto(const std::string& out, const ClusterSize& cluster,
                             const Overrides& overrides);
  const std::string& out() const { return out_; }  // Of the last run.
  // Is told of the first steps of each worker from the next run on; null: nobody is.
  void TraceInto(TraceEvents* trace) { trace_ = trace; }

  const std::unique_ptr<FileSystem> files_;

 private:
  Result<ProcessEnd> Run(const std::string& out, const ClusterSize& cluster,
                         const Overrides& overrides);

  const Overrides always_;
  const std::unique_ptr<MonotonicClock> clock_;
  std::string out_;
  int runs_ = 0;
  TraceEvents* trace_ = nullptr;
};

}  // namespace hdps
