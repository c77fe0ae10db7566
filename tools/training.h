// Runs a job in this process from its text to its end: what hdps train does beside reading flags.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/exit_status.h"
#include "common/base/status.h"
#include "common/job/given_job.h"
#include "common/platform/file_system.h"
#include "common/process/http_flags.h"
#include "scheduler/plan/resume.h"
#include "scheduler/report/progress_listener.h"
#include "tools/local_cluster.h"
#include "worker/step/step_report.h"

namespace hdps {

class ColumnTable;

// Holds the flags of hdps train, which has a help text for each.
struct TrainingRequest {
  WrittenJob job;
  std::vector<std::string> overrides;                                // "key.path=value"
  std::map<std::string, std::shared_ptr<const ColumnTable>> tables;  // As in DataSpec.
  std::string out;
  uint32_t servers = 1, workers = 1;
  int threads = 0;  // Threads of each server and each worker; 0: one per core.
  Resume resume = Resume::kAuto;
  std::string log = "info";  // Lowest level in OUT/log/train.log.
  bool tensorboard = false;  // As in SchedulerOptions.
  std::string trace;         // File for the first steps as events in time; empty: none.
  uint64_t trace_steps = 20;
  std::string init;            // What a run without a checkpoint begins with; as the flag.
  bool init_only = false;      // Only makes the checkpoint of step 0 out of safetensors files.
  std::string resume_command;  // For the run's page; empty: none is told.
  HttpFlags http;              // Where the run can be watched; by default nowhere.
  // Gets what the command shows on the terminal; the log gets it too. `notice` and `warning` are
  // also called on the calling thread before the run, and as LocalClusterOptions says.
  ProgressListener voice;
  const std::atomic<bool>* stop = nullptr;     // As in LocalClusterOptions.
  const std::atomic<bool>* end_now = nullptr;  // The same.
  std::function<void(WorkerId, const StepReport&)> after_step;
};

// A run that may begin. The folder of its results is locked as long as this lives.
struct PreparedRun {
  LocalClusterOptions options;
  std::unique_ptr<FileLock> lock;
};

// Who has the model: the job its layers, or the program that runs a job of type tables.
enum class ModelOf : uint8_t { kJob, kProgram };

// Checks the request, locks its --out, and shows what the data look like. The log of the process is
// OUT/log/train.log from then on. One process can run one job at a time, because its memory is
// checked as if it were the only one. Errors: kInvalidArgument if the job, a flag or the data are
// wrong.
Result<PreparedRun> PrepareRun(const TrainingRequest& request, ModelOf model, FileSystem& files);

// Prepares the run of a job with layers, and runs it to its end. Errors: as PrepareRun().
Result<ProcessEnd> RunTraining(const TrainingRequest& request, FileSystem& files);

}  // namespace hdps
