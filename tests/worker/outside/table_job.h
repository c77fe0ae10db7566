// Fixture that runs a job of type tables in one process, with files in memory and workers that are
// functions of a test.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "common/base/exit_status.h"
#include "common/base/status.h"
#include "common/job/job_spec.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "common/telemetry/published.h"
#include "scheduler/plan/resume.h"
#include "tools/tables/local_tables.h"
#include "worker/outside/table_worker.h"

namespace hdps {

struct JobPicture;

inline constexpr TableId kWords{0}, kUsers{1};  // Of dim 4 and 2.
inline constexpr uint32_t kWordsDim = 4, kUsersDim = 2;

// Pulls the keys of one table for the step. Fails the test if that is refused.
PulledRows PullOne(TableWorker& worker, TableId table, const std::vector<Key>& keys,
                   PullFor use = PullFor::kStep);
// Makes steps without examples until the job has ended by train.max_steps.
void MakeEmptySteps(TableWorker& worker);

class TableJobTest : public testing::Test {
 protected:
  struct Size {
    uint32_t workers = 1, servers = 1;
  };
  using Overrides = std::vector<std::string>;  // "key.path=value"
  // A program is what a worker does. Its thread finishes the job afterwards, if that goes on.
  using Body = std::function<void(TableWorker& worker)>;

  TableJobTest();

  Result<Job> Parse(const Overrides& overrides) const;
  // Starts a job in out(); `options` as LocalTables takes them.
  Result<std::unique_ptr<LocalTables>> Start(const Size& size, const Overrides& overrides,
                                             std::vector<TableWorkerOptions> options = {});
  // Runs a job to its end in a new folder, or in out() if `resume` is not kNever.
  ProcessEnd Run(const Size& size, const Overrides& overrides, const Body& body,
                 std::vector<TableWorkerOptions> options = {}, Resume resume = Resume::kNever);
  // Does so for a job that must succeed, and returns its summary.
  nlohmann::json Summary(const Size& size, const Overrides& overrides, const Body& body,
                         std::vector<TableWorkerOptions> options = {},
                         Resume resume = Resume::kNever);
  const std::string& out() const { return out_; }

  const std::unique_ptr<FileSystem> files_;
  const std::unique_ptr<MonotonicClock> clock_;
  Resume resume_ = Resume::kNever;
  // Gets pictures of the next jobs; null: none are made.
  std::shared_ptr<Published<JobPicture>> pictures_;

 private:
  std::string out_;
  int runs_ = 0;
};

}  // namespace hdps
