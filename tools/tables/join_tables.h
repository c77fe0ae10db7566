// Joins a running job of type tables as one of its workers, over ZeroMQ.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/given_job.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "worker/outside/table_process.h"

namespace hdps {

struct JoinRequestOfTables {
  std::string scheduler;  // tcp://HOST:PORT or ipc://PATH
  std::string keys;       // Folder with a worker's key; empty: none.
  bool insecure = false;
  int32_t rank = -1;              // -1 lets the scheduler choose.
  std::optional<WrittenJob> job;  // None: the scheduler is asked.
  std::vector<std::string> overrides;
  int threads = 0;               // As TableProcessOptions::threads.
  TableWorkerOptions worker;     // The job in it is not used.
  int64_t patience_ms = 60'000;  // For the scheduler's answer with the job.
};

// A worker in this process, and the clock of its loop.
class JoinedTables {
 public:
  // Returns once the first step may begin. Errors: kInvalidArgument if an argument is wrong, the
  // job is another one than the scheduler's or not of type tables; kUnavailable if nobody answers.
  static Result<std::unique_ptr<JoinedTables>> Join(JoinRequestOfTables request, FileSystem& files);

  TableProcess& process() { return *process_; }

 private:
  const std::unique_ptr<MonotonicClock> clock_ = NewSystemClock();
  std::unique_ptr<TableProcess> process_;
};

}  // namespace hdps
