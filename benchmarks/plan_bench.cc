// Whether `hdps plan` tells the truth: constants measured here, then six small clusters predicted
// and run.
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/bench.h"
#include "benchmarks/constants.h"
#include "benchmarks/job_run.h"
#include "tools/cost_model.h"
#include "worker/data/batch_reader.h"
#include "worker/data/synthetic_log.h"
#include "worker/model/model.h"

namespace hdps {
namespace {

constexpr char kBench[] = "plan";

struct Case {
  const char* name;
  uint32_t dim;
  const char* hidden;
  uint32_t batch, epoch_steps;  // Two epochs; the second is measured, when all rows are there.
  const char* mode;
  uint32_t servers, workers, micro_batches;
  const char* placement;
};
constexpr Case kCases[] = {
    {"dim16_large_1s_1w_sync", 16, "1024, 512, 256, 128", 4096, 8, "sync", 1, 1, 1, "tcp"},
    {"dim80_large_1s_1w_sync", 80, "1024, 512, 256, 128", 4096, 6, "sync", 1, 1, 1, "inproc"},
    {"dim16_small_1s_1w_async", 16, "64, 32", 4096, 24, "async", 1, 1, 1, "tcp"},
    {"dim80_small_2s_1w_sync", 80, "64, 32", 4096, 16, "sync", 2, 1, 1, "tcp"},
    {"dim16_small_1s_2w_sync", 16, "64, 32", 8192, 16, "sync", 1, 2, 1, "inproc"},
    {"dim16_large_1s_1w_4_parts", 16, "512, 256", 4096, 10, "sync", 1, 1, 4, "inproc"},
};

uint64_t LogRows(const Case& c) { return uint64_t{c.batch} * c.epoch_steps; }

std::string JobText(const Case& c, const std::string& folder) {
  return R"({"name": "plan", "data": {"format": "criteo", "train": [")" +
         JoinPath(folder, "train.tsv") +
         R"("]}, "model": {"type": "wide_deep", "device": "cpu", "embedding_dim": )" +
         std::to_string(c.dim) + R"(, "hidden": [)" + c.hidden + R"(]}, "train": {"mode": ")" +
         c.mode + R"(", "batch_size": )" + std::to_string(c.batch) +
         R"(, "epochs": 2, "micro_batches": )" + std::to_string(c.micro_batches) + "}}";
}

// Distinct among the keys of one worker's step, as the log has them.
Result<double> UniqueShare(FileSystem& files, const Job& job, uint32_t workers) {
  HDPS_ASSIGN_OR_RETURN(
      const auto reader,
      NewBatchReader(files, job.data, job.data.train,
                     {.batch_size = job.train.batch_size, .num_parts = workers, .shuffle = true}));
  HDPS_RETURN_IF_ERROR(reader->StartEpoch(0, 0));
  HDPS_ASSIGN_OR_RETURN(const auto batch, reader->Next());
  if (!batch.has_value()) return Status(Code::kUnavailable, "plan: no batch");
  std::vector<KeySet> sets;
  std::vector<int> table_keys;
  FindKeys(job, *batch, &sets, &table_keys);
  size_t keys = 0;
  for (const SparseColumn& column : batch->sparse) keys += column.keys.size();
  return static_cast<double>(sets[0].unique.size()) / static_cast<double>(keys);
}

Result<PlanQuestion> QuestionOf(FileSystem& files, const Case& c, const Job& job) {
  PlanQuestion question;
  HDPS_ASSIGN_OR_RETURN(question.shape, ShapeOf(job));
  HDPS_ASSIGN_OR_RETURN(question.unique_share, UniqueShare(files, job, c.workers));
  HDPS_ASSIGN_OR_RETURN(const uint64_t bytes, files.FileSize(job.data.train[0]));
  question.text_row_bytes = static_cast<double>(bytes) / double(LogRows(c));
  question.batch = job.train.batch_size;
  question.micro_batches = job.train.micro_batches;
  question.servers = c.servers;
  question.workers = c.workers;
  question.one_machine = true;
  question.inproc = std::string(c.placement) == "inproc";
  return question;
}

Status RunCase(const BenchSetting& setting, FileSystem& files, const Case& c,
               const MachineConstants& constants, BenchReport& report) {
  SyntheticLogSpec log;
  log.rows = LogRows(c);
  log.eval_rows = 0;
  log.vocabulary = 100'000;
  HDPS_RETURN_IF_ERROR(WriteSyntheticLog(files, setting.scratch, log).status());
  JobRunOptions options;
  options.job = JobText(c, setting.scratch);
  options.steady_from = c.epoch_steps + 2;
  options.steady_to = 2 * c.epoch_steps;
  options.overrides = setting.overrides;
  options.placement = c.placement;
  options.servers = c.servers;
  options.workers = c.workers;
  HDPS_ASSIGN_OR_RETURN(const Job job, ParseJob(options.job, kBench, options.overrides));
  HDPS_ASSIGN_OR_RETURN(PlanQuestion question, QuestionOf(files, c, job));
  question.cores = static_cast<uint32_t>(constants.cores);
  const PlanAnswer answer = Plan(question, constants);
  std::vector<double> measured, compute, rest;
  constexpr double kMilli = 1e3;
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    SayProgress(kBench, std::string(c.name) + ", run " + std::to_string(repeat + 1));
    options.out = JoinPath(setting.scratch, std::string(c.name) + "_" + std::to_string(repeat));
    HDPS_ASSIGN_OR_RETURN(const JobRun run, RunJob(setting, files, options));
    HDPS_RETURN_IF_ERROR(files.RemoveAll(options.out));
    measured.push_back(run.steady_examples_per_second);
    compute.push_back(double(run.times.compute_ns) * 1e-6 / double(run.times.steps));
    rest.push_back(kMilli * c.batch / run.steady_examples_per_second - compute.back());
  }
  const double predicted_compute = kMilli * c.workers * answer.compute_seconds;
  report.AddBeside(kBench, c.name, "predicted", "examples/s", {answer.examples_per_second},
                   "measured", {MedianOf(measured)});
  report.Add(kBench, c.name, "measured", "examples/s", measured);
  report.AddBeside(kBench, c.name, "compute, predicted", "ms", {predicted_compute}, "measured",
                   {MedianOf(compute)});
  report.AddBeside(kBench, c.name, "rest of a step, predicted", "ms",
                   {kMilli * answer.step_seconds - predicted_compute}, "measured",
                   {MedianOf(rest)});
  return Status();
}

}  // namespace

Status RunPlanBench(const BenchSetting& setting, FileSystem& files, BenchReport& report) {
  BenchSetting own = setting;
  HDPS_ASSIGN_OR_RETURN(const ConstantSamples samples, MeasureConstants(own, files));
  HDPS_ASSIGN_OR_RETURN(const MachineConstants constants, ConstantsOf(samples));
  for (const Case& c : kCases) {
    if (!setting.Wants(c.name)) continue;
    HDPS_RETURN_IF_ERROR(RunCase(setting, files, c, constants, report));
  }
  return Status();
}

}  // namespace hdps
