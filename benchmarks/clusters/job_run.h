// A whole job, from the first join to the last word, with the times of its workers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/bench.h"
#include "benchmarks/clusters/slow_link.h"
#include "worker/step/stage.h"

namespace hdps {

// inproc: all members are threads, frames in memory, as in `hdps train`. tcp, ipc: threads with
// sockets between them. processes: hdps-server and hdps-worker beside this program, over tcp;
// servers: hdps-server beside it, workers threads.
struct JobRunOptions {
  std::string job;                     // Its JSON.
  std::vector<std::string> overrides;  // As ParseJob takes them.
  std::string placement = "tcp";
  uint32_t servers = 1, workers = 1;
  std::string out;         // Of the run; made.
  bool keep_last = false;  // Continue from a checkpoint found there.
  // Steps of a worker after which, and up to which, it counts for steady_examples_per_second. Rows
  // are made in the first steps; later ones find them. 0: not wanted. With `processes` as the
  // scheduler hears of them, so the job's heartbeats should be frequent.
  int64_t steady_from = 0, steady_to = 0;
  int64_t kill_server_at = 0;  // With `servers`: server 0 is killed behind this step. 0: never.
  SlowLink* server_link = nullptr;  // Before every server that is a thread; null: nothing.
};

struct JobRun {
  StepTimes times;         // Of all workers together; empty with `processes`.
  StepTimes steady_times;  // Of worker 0's steady steps; likewise.
  // Processor time of this process, all threads, in a steady step of worker 0: it stays the same
  // where others are at work on the machine too.
  double steady_cpu_seconds = 0;
  double examples_per_second = 0;         // While training, all workers.
  double steady_examples_per_second = 0;  // All workers.
  double first_step_seconds = 0;  // From the start of the members to the end of the first step.
  double wall_seconds = 0;
  double eval_auc = 0;      // Of summary.json; 0: none.
  int64_t steps = 0;        // Of the job, also those before it was resumed.
  int64_t first_clock = 0;  // Behind the first step of this run.
  std::string digest;       // Of all parameters at the end.
  // Of the workers' sockets over the whole run, all that a job says; 0 where they are processes.
  uint64_t bytes_sent = 0, bytes_received = 0;
  double cache_hit_rate = 0, cache_swaps = 0;  // Of rows kept at the workers.
  double noticed_seconds = 0;  // From the kill to the end of the job that could not go on.
  double rows = 0, rows_on_disk = 0, rows_fetched = 0;
  double row_bytes = 0;         // Of memory, of all servers: rows there and their index.
  double server_bytes_max = 0;  // With `processes`: the most memory that one server took.
};

// With a kill the job must fail, and the files it leaves are the result. Else kUnavailable with the
// member's words when the job does not end well.
Result<JobRun> RunJob(const BenchSetting& setting, FileSystem& files, const JobRunOptions& options);

}  // namespace hdps
