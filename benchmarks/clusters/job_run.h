// Runs a whole job, from the first join to its end, and times its workers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/bench.h"
#include "benchmarks/clusters/slow_link.h"
#include "worker/step/stage.h"

namespace hdps {

// Placement of the members. inproc: threads with frames in memory, as in `hdps train`. tcp, ipc:
// threads with sockets. processes: hdps-server and hdps-worker from this program's folder, over
// tcp. servers: hdps-server processes, workers as threads.
struct JobRunOptions {
  std::string job;                     // JSON of the job.
  std::vector<std::string> overrides;  // For ParseJob.
  std::string placement = "tcp";
  uint32_t servers = 1, workers = 1;
  std::string out;         // Folder of the run; it is created.
  bool keep_last = false;  // Continue from a checkpoint in `out`.
  // A worker's steps after `steady_from`, up to `steady_to`, count for steady_examples_per_second:
  // the first steps create rows, later ones find them. 0: not measured. With `processes` the steps
  // are those that the scheduler hears of, so the job's heartbeats should be frequent.
  int64_t steady_from = 0, steady_to = 0;
  // With `servers`: server 0 is killed after this step. 0: never.
  int64_t kill_server_at = 0;
  // Link in front of every server thread; null: none.
  SlowLink* server_link = nullptr;
};

struct JobRun {
  StepTimes times;         // All workers together; empty with `processes`.
  StepTimes steady_times;  // Steady steps of worker 0; empty with `processes`.
  // CPU time of this process, all threads, per steady step of worker 0. Other load on the machine
  // hardly changes it.
  double steady_cpu_seconds = 0;
  double examples_per_second = 0;         // Rate of all workers while training.
  double steady_examples_per_second = 0;  // Rate of all workers.
  // From the start of the members to the end of the first step.
  double first_step_seconds = 0;
  double wall_seconds = 0;
  double eval_auc = 0;      // From summary.json; 0: none.
  int64_t steps = 0;        // Steps of the job, with those before it was resumed.
  int64_t first_clock = 0;  // Clock after the first step of this run.
  std::string digest;       // Digest of all parameters at the end.
  // Bytes on the workers' sockets over the whole run, with all messages of the job; 0 if workers
  // are processes.
  uint64_t bytes_sent = 0, bytes_received = 0;
  double cache_hit_rate = 0, cache_swaps = 0;  // Rows cached at the workers.
  // From the kill until the job ended, because it could not go on.
  double noticed_seconds = 0;
  double rows = 0, rows_on_disk = 0, rows_fetched = 0;
  double row_bytes = 0;  // Memory for rows and their index, all servers.
  // With `processes`: the largest memory of a server.
  double server_bytes_max = 0;
};

// Runs the job. With a kill the job must fail, and its files are the result. Otherwise returns
// kUnavailable with the member's message if the job fails.
Result<JobRun> RunJob(const BenchSetting& setting, FileSystem& files, const JobRunOptions& options);

}  // namespace hdps
