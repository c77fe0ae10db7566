// Measures the loss of a server: the time until it is noticed, the time from the start of the next
// run to its first step, and the steps that are trained again.
#include <algorithm>
#include <string>
#include <vector>

#include "benchmarks/bench.h"
#include "benchmarks/clusters/job_run.h"
#include "tools/synthetic/synthetic_log.h"

namespace hdps {
namespace {

constexpr char kBench[] = "recovery";
constexpr uint32_t kBatch = 4096;
constexpr int64_t kEverySteps = 20, kKillStep = 33;

std::string JobText(const std::string& folder) {
  return R"({"name": "recovery", "data": {"format": "criteo", "train": [")" +
         JoinPath(folder, "train.tsv") +
         R"("]}, "model": {"type": "wide_deep", "device": "cpu", "embedding_dim": 16,
         "hidden": [64, 32]}, "train": {"batch_size": )" +
         std::to_string(kBatch) + R"(}, "checkpoint": {"every_steps": )" +
         std::to_string(kEverySteps) + R"(}, "cluster": {"dead_after_ms": 1000,
         "heartbeat_ms": 100}})";
}

}  // namespace

Status RunRecoveryBench(const BenchSetting& setting, FileSystem& files, BenchReport& report) {
  const std::string name = "server_killed_then_resumed";
  if (!setting.Wants(name)) return Status();
  SyntheticLogSpec log;
  log.rows = kBatch * (kKillStep + 12);
  log.eval_rows = 0;
  log.vocabulary = setting.quick ? 10'000 : 1'000'000;
  HDPS_RETURN_IF_ERROR(WriteSyntheticLog(files, setting.scratch, log).status());
  std::vector<double> noticed, first_step, cold_first_step, lost;
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    PrintProgress(kBench, name + ", run " + std::to_string(repeat + 1));
    JobRunOptions options;
    options.job = JobText(setting.scratch);
    options.placement = "servers";
    options.servers = 2;
    options.out = JoinPath(setting.scratch, "out_" + std::to_string(repeat));
    options.kill_server_at = kKillStep;
    HDPS_ASSIGN_OR_RETURN(const JobRun killed, RunJob(setting, files, options));
    options.kill_server_at = 0;
    options.keep_last = true;
    HDPS_ASSIGN_OR_RETURN(const JobRun resumed, RunJob(setting, files, options));
    HDPS_RETURN_IF_ERROR(files.RemoveAll(options.out));
    noticed.push_back(killed.noticed_seconds);
    cold_first_step.push_back(killed.first_step_seconds);
    first_step.push_back(resumed.first_step_seconds);
    lost.push_back(static_cast<double>(killed.steps - (resumed.first_clock - 1)));
  }
  report.Add(kBench, name, "noticed after", "s", noticed);
  report.AddBeside(kBench, name, "restart to first step", "s", first_step,
                   "start without a checkpoint", cold_first_step);
  report.Add(kBench, name, "steps trained again", "steps", lost);
  return Status();
}

}  // namespace hdps
