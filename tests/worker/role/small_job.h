// Fixture that trains a small Wide&Deep job in one process with files in memory.
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
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "common/platform/random.h"
#include "common/telemetry/member_watch.h"
#include "tools/local_cluster.h"

namespace hdps {

struct Job;

inline constexpr int kTracedSteps = 5;

struct ClusterSize {
  uint32_t workers = 1, servers = 1;
};

using Overrides = std::vector<std::string>;  // "key.path=value"
inline Overrides operator+(Overrides a, const Overrides& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Draws the ids of features a and b for one row.
using DrawIds = std::function<std::pair<uint64_t, uint64_t>(Random& random, uint64_t row)>;
// Returns `count` rows: the label, which mostly depends on a, a number, a, and b, with a second key
// of b in every other row.
std::string SmallRows(uint64_t count, uint64_t seed, const DrawIds& draw);

// Runs job.json on train.csv and eval.csv; a test may rewrite these files.
class SmallJobTest : public testing::Test {
 protected:
  // `always`: settings of every run, before its own.
  SmallJobTest(Overrides always, const std::string& train, const std::string& eval);

  // Run the job in a new folder, which becomes out(), or in the folder `out`.
  ProcessEnd RunJob(const ClusterSize& cluster, const Overrides& overrides);
  ProcessEnd RunJobInto(const std::string& out, const ClusterSize& cluster,
                        const Overrides& overrides);
  // Returns the message if the job is refused or ends as the operator's mistake; empty: it does
  // not.
  std::string Refusal(const ClusterSize& cluster, const Overrides& overrides);
  // Runs a job that must succeed, and returns its summary.
  nlohmann::json Summary(const ClusterSize& cluster, const Overrides& overrides);
  nlohmann::json SummaryInto(const std::string& out, const ClusterSize& cluster,
                             const Overrides& overrides);
  const std::string& out() const { return out_; }  // Returns the folder of the last run.
  // Records the first steps of each worker from the next run on; null: no trace.
  void TraceInto(RunTrace* trace) { trace_ = trace; }
  // Sets who gets copies of the members' figures, from the next run on: LocalClusterOptions::watch.
  void Watch(std::function<MemberWatch*(Role, uint32_t rank)> watch) { watch_ = std::move(watch); }
  const Job& job() const { return *job_; }  // The job of the last run.

  const std::unique_ptr<FileSystem> files_;

 private:
  Result<ProcessEnd> Run(const std::string& out, const ClusterSize& cluster,
                         const Overrides& overrides);

  const Overrides always_;
  const std::unique_ptr<MonotonicClock> clock_;
  std::string out_;
  int runs_ = 0;
  RunTrace* trace_ = nullptr;
  std::function<MemberWatch*(Role, uint32_t rank)> watch_;
  std::shared_ptr<const Job> job_;
};

}  // namespace hdps
