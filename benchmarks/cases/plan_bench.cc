// Checks `hdps plan` against reality: measures constants here, then predicts and runs nine small
// clusters.
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "benchmarks/bench.h"
#include "benchmarks/cases/constants/constants.h"
#include "benchmarks/clusters/job_run.h"
#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/train_spec.h"
#include "tools/plan/cost_model.h"
#include "tools/synthetic/synthetic_log.h"
#include "worker/data/batch_reader.h"
#include "worker/model/model.h"

namespace hdps {
namespace {

constexpr char kBench[] = "plan";
constexpr double kMilli = 1e3;
constexpr uint64_t kVocabulary = 100'000;  // Values of a field.

struct Case {
  const char* name;
  uint32_t dim;
  const char* hidden;
  uint32_t batch, epoch_steps;  // Two epochs; the second is measured, when all rows exist.
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
    // No constant of the plan was fitted to these.
    {"dim64_small_2s_2w_sync", 64, "64, 32", 8192, 16, "sync", 2, 2, 1, "tcp"},
    {"dim16_small_1s_2w_async", 16, "64, 32", 8192, 16, "async", 1, 2, 1, "tcp"},
    {"dim16_small_1s_1w_1024", 16, "256, 128", 1024, 64, "sync", 1, 1, 1, "tcp"},
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

// Shares of the keys of one worker's step, counted in the log, and of all workers' previous step.
struct KeyShares {
  double unique = 0;   // Distinct keys among them.
  double changed = 0;  // Distinct keys that the previous step has too.
};
Result<KeyShares> SharesOf(FileSystem& files, const Job& job, uint32_t workers) {
  const auto keys_of_step = [&](uint64_t step, uint32_t parts) -> Result<KeySet> {
    HDPS_ASSIGN_OR_RETURN(
        const auto reader,
        NewBatchReader(files, job.data, job.data.train,
                       {.batch_size = job.train.batch_size, .num_parts = parts, .shuffle = true}));
    HDPS_RETURN_IF_ERROR(reader->StartEpoch(0, step));
    HDPS_ASSIGN_OR_RETURN(const auto batch, reader->Next());
    if (!batch.has_value()) return Status(Code::kUnavailable, "plan: no batch");
    std::vector<KeySet> sets;
    KeyFinder(job).Find(*batch, &sets);
    return std::move(sets[0]);
  };
  HDPS_ASSIGN_OR_RETURN(const KeySet before, keys_of_step(0, 1));
  HDPS_ASSIGN_OR_RETURN(const KeySet own, keys_of_step(1, workers));
  const std::set<Key> changed(before.unique.begin(), before.unique.end());
  size_t keys = 0, shared = 0;
  for (const std::vector<uint32_t>& column : own.row_index) keys += column.size();
  for (const Key key : own.unique) shared += changed.count(key);
  const auto unique = static_cast<double>(own.unique.size());
  return KeyShares{unique / static_cast<double>(keys), static_cast<double>(shared) / unique};
}

Result<PlanQuestion> QuestionOf(FileSystem& files, const Case& c, const Job& job) {
  PlanQuestion question;
  HDPS_ASSIGN_OR_RETURN(question.shape, ShapeOf(job));
  HDPS_ASSIGN_OR_RETURN(const KeyShares shares, SharesOf(files, job, c.workers));
  question.unique_share = shares.unique;
  question.changed_share = shares.changed;
  question.rows = double(kVocabulary) * question.shape.keys;
  question.sync = job.train.mode == Mode::kSync;
  question.lookahead = job.train.lookahead;
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

// A case and its measurements, a sample per turn.
struct Measured {
  const Case* of = nullptr;
  PlanQuestion question;
  JobRunOptions options;
  std::vector<double> speeds;
  std::map<std::string, std::vector<double>> parts;  // Milliseconds of a step of worker 0.
};

Result<Measured> Prepare(const BenchSetting& setting, FileSystem& files, const Case& c) {
  Measured made;
  made.of = &c;
  const std::string folder = JoinPath(setting.scratch, c.name);
  SyntheticLogSpec log;
  log.rows = LogRows(c);
  log.eval_rows = 0;
  log.vocabulary = kVocabulary;
  HDPS_RETURN_IF_ERROR(files.MakeDirectories(folder));
  HDPS_RETURN_IF_ERROR(WriteSyntheticLog(files, folder, log).status());
  JobRunOptions& options = made.options;
  options.job = JobText(c, folder);
  options.steady_from = c.epoch_steps + 2;
  options.steady_to = 2 * c.epoch_steps;
  options.overrides = setting.overrides;
  options.placement = c.placement;
  options.servers = c.servers;
  options.workers = c.workers;
  options.out = JoinPath(folder, "out");
  HDPS_ASSIGN_OR_RETURN(const Job job, ParseJob(options.job, kBench, options.overrides));
  HDPS_ASSIGN_OR_RETURN(made.question, QuestionOf(files, c, job));
  return made;
}

Status RunOnce(const BenchSetting& setting, FileSystem& files, Measured* measured) {
  HDPS_ASSIGN_OR_RETURN(const JobRun run, RunJob(setting, files, measured->options));
  HDPS_RETURN_IF_ERROR(files.RemoveAll(measured->options.out));
  measured->speeds.push_back(run.steady_examples_per_second);
  const StepTimes& times = run.steady_times;
  const auto ms = [&](int64_t ns) { return double(ns) * 1e-6 / double(times.steps); };
  const auto add = [&](const char* part, double value) { measured->parts[part].push_back(value); };
  add("compute", ms(times.compute_ns));
  add("rows and push", ms(times.pull_wait_ns + times.push_wait_ns));
  add("reader beside it", ms(times.read_ns + times.dedup_ns));
  add("processor time", kMilli * run.steady_cpu_seconds);
  return Status();
}

void Report(const Measured& measured, const MachineConstants& constants, BenchReport& report) {
  const char* const name = measured.of->name;
  PlanQuestion question = measured.question;
  question.cores = static_cast<uint32_t>(constants.cores);
  const PlanAnswer answer = Plan(question, constants);
  report.AddBeside(kBench, name, "predicted", "examples/s", {answer.examples_per_second},
                   "measured", {MedianOf(measured.speeds)});
  report.Add(kBench, name, "measured", "examples/s", measured.speeds);
  const auto add = [&](const char* part, double seconds) {
    report.AddBeside(kBench, name, std::string(part) + ", predicted", "ms", {kMilli * seconds},
                     "measured", {MedianOf(measured.parts.at(part))});
  };
  add("compute", answer.compute_seconds);
  add("rows and push", answer.exchange_seconds);
  add("reader beside it", answer.reader_seconds);
  add("processor time", answer.core_seconds);
}

}  // namespace

// Measures constants and runs in turns, so that other load on the machine hits both alike.
Status RunPlanBench(const BenchSetting& setting, FileSystem& files, BenchReport& report) {
  std::vector<Measured> cases;
  for (const Case& c : kCases) {
    if (!setting.Wants(c.name)) continue;
    HDPS_ASSIGN_OR_RETURN(Measured made, Prepare(setting, files, c));
    cases.push_back(std::move(made));
  }
  ConstantSamples samples;
  for (int turn = 0; turn < setting.repeats; ++turn) {
    BenchSetting once = setting;
    once.repeats = 1;
    HDPS_ASSIGN_OR_RETURN(const ConstantSamples of_turn, MeasureConstants(once, files));
    for (const auto& [name, values] : of_turn) {
      std::vector<double>& all = samples[name];
      all.insert(all.end(), values.begin(), values.end());
    }
    for (Measured& measured : cases) {
      PrintProgress(kBench, std::string(measured.of->name) + ", run " + std::to_string(turn + 1));
      HDPS_RETURN_IF_ERROR(RunOnce(setting, files, &measured));
    }
  }
  HDPS_ASSIGN_OR_RETURN(const MachineConstants constants, ConstantsOf(samples));
  for (const Measured& measured : cases) Report(measured, constants, report);
  return Status();
}

}  // namespace hdps
