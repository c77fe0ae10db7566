// Measures what the counters of a step cost, beside the smallest step that a job can make.
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/bench.h"
#include "benchmarks/clusters/job_run.h"
#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/platform/monotonic_clock.h"
#include "common/platform/random.h"
#include "common/protocol/row_messages.h"
#include "common/telemetry/meters.h"
#include "server/watch/server_meters.h"
#include "worker/exchange/staleness_seen.h"
#include "worker/step/step_meters.h"

namespace hdps {
namespace {

constexpr char kBench[] = "telemetry";
constexpr uint64_t kStepsOfJob = 3000;
constexpr int64_t kFirstSteps = 200;

// One example a step, one key, one weight.
constexpr char kJob[] = R"({"name": "smallest",
  "data": {"format": "csv", "columns": [{"name": "y", "type": "label"}, {"name": "a"}]},
  "model": {"type": "logistic"},
  "train": {"batch_size": 1, "epochs": 1}, "cluster": {"shards": 1}})";

Status WriteRows(FileSystem& files, const std::string& path) {
  Random random(1);
  std::string text;
  for (uint64_t i = 0; i < kStepsOfJob; ++i) {
    text += std::to_string(random.Below(2)) + ",a" + std::to_string(random.Below(10)) + "\n";
  }
  return WriteFileAtomically(files, path, text, Survives::kProcess);
}

// Counts what a worker counts in a step with one pull and one push, to one server.
void CountAtWorker(uint64_t step, const std::vector<PullReply>& replies, MonotonicClock& clock,
                   StepTimes* times, Meters* meters) {
  const StepTimes before = *times;
  for (int64_t StepTimes::*const part : StepTimes::kParts) times->*part += 1000;
  const int64_t sent = clock.NowNs();
  for (const size_t direction : {0, 0, 0, 1, 1, 1}) {
    meters->Add(FigureNamed("hdps_worker_traffic_bytes_total"), 200, direction);
  }
  meters->Observe(FigureNamed("hdps_worker_pull_seconds"), 80'000);
  meters->Observe(FigureNamed("hdps_worker_push_seconds"), clock.NowNs() - sent);
  CountStaleness(static_cast<Clock>(step), replies, meters);
  CountStep(times->Since(before), 1, 0.7, meters);
  meters->Add(FigureNamed("hdps_worker_bad_rows_total"), 0);
}

// Counts what a server counts in answering one pull and taking one push.
void CountAtServer(const std::vector<TableKeys>& tables, ServerMeters* meters) {
  const int64_t pull = meters->NowNs();
  meters->CountKeys(tables);
  meters->Took(FigureNamed("hdps_server_pull_seconds"), pull);
  meters->Took(FigureNamed("hdps_server_push_seconds"), meters->NowNs());
}

// Returns the nanoseconds of one call of `work`, the mean of many.
template <typename Work>
double NsOf(uint64_t times, const Work& work) {
  const double seconds = SecondsOf([&] {
    for (uint64_t i = 0; i < times; ++i) work(i);
  });
  return seconds * 1e9 / static_cast<double>(times);
}

}  // namespace

Status RunTelemetryBench(const BenchSetting& setting, FileSystem& files, BenchReport& report) {
  const std::string name = "smallest_step";
  if (!setting.Wants(name)) return Status();
  const std::string data = JoinPath(setting.scratch, "train.csv");
  HDPS_RETURN_IF_ERROR(WriteRows(files, data));
  JobRunOptions options;
  options.job = kJob;
  options.overrides = {"data.train=[\"" + data + "\"]"};
  options.placement = "inproc";
  options.steady_from = kFirstSteps;
  options.steady_to = kStepsOfJob;
  HDPS_ASSIGN_OR_RETURN(const Job job, ParseJob(options.job, kBench, options.overrides));

  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  Meters worker(FigureLayout(FigureRole::kWorker, 0));
  ServerMeters server(job, clock.get());
  StepTimes times;
  const std::vector<PullReply> replies(1);
  const std::vector<TableKeys> tables = {{{0}, 1, 1, {}}};
  const uint64_t calls = setting.quick ? 100'000 : 1'000'000;
  std::vector<double> at_worker, at_server, read, step;
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    PrintProgress(kBench, name + ", run " + std::to_string(repeat + 1));
    at_worker.push_back(
        NsOf(calls, [&](uint64_t i) { CountAtWorker(i % 8, replies, *clock, &times, &worker); }));
    at_server.push_back(NsOf(calls, [&](uint64_t) { CountAtServer(tables, &server); }));
    read.push_back(NsOf(calls / 100, [&](uint64_t) { worker.Read(); }));
    options.out = JoinPath(setting.scratch, "out_" + std::to_string(repeat));
    HDPS_ASSIGN_OR_RETURN(const JobRun run, RunJob(setting, files, options));
    HDPS_RETURN_IF_ERROR(files.RemoveAll(options.out));
    if (run.steady_times.steps == 0) return Status(Code::kUnavailable, "the job made no step");
    step.push_back(static_cast<double>(run.steady_times.total_ns) /
                   static_cast<double>(run.steady_times.steps));
  }
  const std::string yardstick = "the smallest step";
  report.AddBeside(kBench, name, "a worker's counters", "ns/step", at_worker, yardstick, step);
  report.AddBeside(kBench, name, "a server's counters", "ns/step", at_server, yardstick, step);
  report.AddBeside(kBench, name, "a heartbeat's copy of a worker's", "ns", read, yardstick, step);
  return Status();
}

}  // namespace hdps
