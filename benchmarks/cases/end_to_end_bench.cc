// Measures how fast whole jobs train, and where a step's time goes, by model, mode and placement.
#include <ctime>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/bench.h"
#include "benchmarks/clusters/job_run.h"
#include "benchmarks/yardsticks/model_products.h"
#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/train_spec.h"
#include "tools/synthetic/synthetic_log.h"

namespace hdps {
namespace {

constexpr char kBench[] = "end_to_end";

// A model on a log.
struct Work {
  const char* name;
  uint32_t batch;
  uint64_t steps;      // Steps per epoch.
  uint32_t numeric;    // Numeric columns of the log that are not empty.
  uint64_t eval_rows;  // 0: no evaluation.
  const char* model;   // JSON.
  // Uses the 13 numbers as keys too: 39 fields.
  bool buckets;
  uint64_t vocabulary = 100'000;
};

// First steps of the last epoch, in which the pipeline fills; not counted.
constexpr int64_t kFirstSteps = 2;

// Criteo's shape: 13 numbers and 26 keys of 100,000 values each, dim 16, MLP 1024-512-256-128.
constexpr Work kCriteo = {
    "wide_deep_criteo_shape",
    4096,
    24,
    13,
    0,
    R"({"type": "wide_deep", "embedding_dim": 16, "hidden": [1024, 512, 256, 128]})",
    false};
// 39 keys, dim 80, the same MLP.
constexpr Work kWideRows = {"wide_deep_39_fields_dim80",
                            4096,
                            10,
                            13,
                            0,
                            R"({"type": "wide_deep", "embedding_dim": 80, "numeric": false,
                                "hidden": [1024, 512, 256, 128]})",
                            true};
constexpr Work kSmall = {
    "small_mlp", 4096, 150,
    13,          0,    R"({"type": "wide_deep", "embedding_dim": 16, "hidden": [64, 32]})",
    false};
// The set that PyTorch and another parameter server were measured on: 26 ids, no numbers, Adagrad,
// one epoch of 100,000 rows, AUC on 20,000 others.
constexpr Work kPeers = {"peers_set", 1024, 98, 0, 20'000, R"({"type": "graph",
    "tables": [{"name": "ids", "dim": 16, "optimizer": {"kind": "adagrad", "learning_rate": 0.05,
      "initial_accumulator": 1e-8}}],
    "dense_optimizer": {"kind": "adagrad", "learning_rate": 0.02, "initial_accumulator": 1e-8},
    "layers": [{"name": "embedding", "kind": "embedding", "table": "ids"},
      {"name": "h1", "inputs": ["embedding"], "units": 256, "activation": "relu"},
      {"name": "h2", "inputs": ["h1"], "units": 128, "activation": "relu"},
      {"name": "h3", "inputs": ["h2"], "units": 64, "activation": "relu"},
      {"name": "logit", "inputs": ["h3"], "units": 1}]})", false};

// REF-L: 39 fields, 200,000 rows of dim 80 with lazy Adam and of dim 1 with FTRL, batches of
// 16,000.
constexpr Work kRefL = {"ref_l",
                        16'000,
                        30,
                        13,
                        0,
                        R"({"type": "wide_deep", "embedding_dim": 80, "numeric": false,
                            "hidden": [1024, 512, 256, 128]})",
                        true,
                        7685};
// REF-L with 160,000 rows cached at the worker, on its GPU.
constexpr Work kRefLHot = {"ref_l_hot_rows",
                           16'000,
                           30,
                           13,
                           0,
                           R"({"type": "wide_deep", "embedding_dim": 80, "numeric": false,
                               "hidden": [1024, 512, 256, 128], "vocab_cache_size": 160000})",
                           true,
                           7685};

struct Case {
  const Work& work;
  const char* mode;
  const char* placement;
  uint32_t servers, workers;
  const char* precision = "fp32";
};
const Case kCases[] = {
    {kCriteo, "sync", "tcp", 1, 1},       {kCriteo, "sync", "inproc", 1, 1},
    {kCriteo, "sync", "processes", 1, 1}, {kCriteo, "async", "tcp", 1, 1},
    {kWideRows, "sync", "tcp", 1, 1},     {kSmall, "sync", "tcp", 1, 1},
    {kSmall, "sync", "inproc", 1, 1},     {kSmall, "sync", "processes", 1, 1},
    {kSmall, "async", "tcp", 1, 1},       {kSmall, "sync", "tcp", 1, 2},
    {kPeers, "sync", "inproc", 1, 1},     {kPeers, "sync", "processes", 1, 1},
    {kPeers, "async", "processes", 1, 1}, {kSmall, "async", "processes", 2, 1},
    {kSmall, "sync", "processes", 2, 1},
};

// Cases that take minutes on a CPU.
const Case kGpuCases[] = {
    {kRefL, "sync", "inproc", 1, 1},
    {kRefL, "sync", "inproc", 1, 1, "tf32"},
    {kRefL, "sync", "inproc", 1, 1, "bf16"},
    {kRefLHot, "sync", "inproc", 1, 1},
    {kRefLHot, "sync", "inproc", 1, 1, "tf32"},
    {kRefLHot, "sync", "inproc", 1, 1, "bf16"},
};

// Names the first case of a work, over tcp with one worker and one server, by the work alone.
std::string NameOf(const Case& c, const std::string& device) {
  std::string name = std::string(c.work.name) + "_" + device;
  if (std::string(c.precision) != "fp32") name += std::string("_") + c.precision;
  if (std::string(c.mode) == "sync" && std::string(c.placement) == "tcp" && c.workers == 1) {
    return name;
  }
  return name + "_" + c.mode + "_" + c.placement + "_" + std::to_string(c.servers) + "s_" +
         std::to_string(c.workers) + "w";
}

// Returns features of buckets of the 13 numbers, which are counts.
std::string Buckets() {
  std::string features;
  for (int i = 1; i <= 13; ++i) {
    features += std::string(features.empty() ? "" : ", ") + R"({"name": "B)" + std::to_string(i) +
                R"(", "kind": "bucketized", "from": ["I)" + std::to_string(i) +
                R"("], "boundaries": [0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 1000]})";
  }
  return features;
}

// Rows are created in the first epoch and measured in the second, except where the task is one
// epoch.
int Epochs(const Work& work) { return work.eval_rows > 0 ? 1 : 2; }

uint64_t StepsOf(const BenchSetting& setting, const Work& work) {
  return setting.quick ? work.steps / 3 : work.steps;
}

std::string JobText(const Work& work, const std::string& folder) {
  std::string text = R"({"name": "end_to_end", "data": {"format": "criteo", "train": [")" +
                     JoinPath(folder, "train.tsv") + R"("])";
  if (work.eval_rows > 0) text += R"(, "eval": [")" + JoinPath(folder, "eval.tsv") + R"("])";
  if (work.buckets) text += R"(, "features": [)" + Buckets() + "]";
  return text + R"(}, "model": )" + work.model + R"(, "train": {"epochs": )" +
         std::to_string(Epochs(work)) + R"(, "batch_size": )" + std::to_string(work.batch) +
         R"(}, "cluster": {"heartbeat_ms": 20})" + R"(, "parallel": {"gradients_mean": true}})";
}

Status WriteLog(const BenchSetting& setting, FileSystem& files, const Work& work,
                const std::string& folder) {
  if (files.Exists(JoinPath(folder, "train.tsv"))) return Status();
  SyntheticLogSpec log;
  log.rows = StepsOf(setting, work) * work.batch;
  log.numeric = work.numeric;
  log.eval_rows = work.eval_rows;
  log.vocabulary = work.vocabulary;
  HDPS_RETURN_IF_ERROR(files.MakeDirectories(folder));
  return WriteSyntheticLog(files, folder, log).status();
}

// Returns the milliseconds of each part of a step, in the order of printing. The first is the step;
// all others but the last two add up to it. Those two belong to the reader's thread, which overlaps
// the step.
std::vector<std::pair<std::string, double>> PartsOf(const StepTimes& times) {
  const auto ms = [&](int64_t ns) {
    return static_cast<double>(ns) * 1e-6 / static_cast<double>(times.steps);
  };
  const int64_t named = times.read_wait_ns + times.pull_wait_ns + times.compute_ns +
                        times.reduce_dense_ns + times.push_wait_ns;
  return {{"whole step", ms(times.total_ns)}, {"reader wait", ms(times.read_wait_ns)},
          {"pull", ms(times.pull_wait_ns)},   {"compute", ms(times.compute_ns)},
          {"push", ms(times.push_wait_ns)},   {"other", ms(times.total_ns - named)},
          {"reader read", ms(times.read_ns)}, {"reader dedup", ms(times.dedup_ns)}};
}

Status RunCase(const BenchSetting& setting, FileSystem& files, const Case& c, BenchReport& report) {
  const std::string name = NameOf(c, setting.device);
  const std::string folder = JoinPath(setting.scratch, c.work.name);
  HDPS_RETURN_IF_ERROR(WriteLog(setting, files, c.work, folder));
  JobRunOptions options;
  options.job = JobText(c.work, folder);
  options.overrides = setting.overrides;
  options.overrides.push_back("model.device=" + setting.device);
  options.overrides.push_back(std::string("train.mode=") + c.mode);
  if (std::string(c.precision) != "fp32") {
    options.overrides.push_back(std::string("model.precision=") + c.precision);
  }
  options.placement = c.placement;
  options.servers = c.servers;
  options.workers = c.workers;
  const auto steps = static_cast<int64_t>(StepsOf(setting, c.work));
  options.steady_to = Epochs(c.work) * steps;
  options.steady_from = options.steady_to - steps + kFirstSteps;
  HDPS_ASSIGN_OR_RETURN(const Job job, ParseJob(options.job, kBench, options.overrides));
  HDPS_ASSIGN_OR_RETURN(const JobShape shape, ShapeOf(job));
  HDPS_ASSIGN_OR_RETURN(
      const auto alone,
      ModelProducts::Make(setting.device, setting.threads, shape.products, job.train.batch_size,
                          Bf16Products::kNone, job.model.precision));
  std::vector<double> speeds, whole_speeds, alone_speeds, aucs, cpu_ms, alone_cpu_ms;
  std::vector<std::pair<std::string, std::vector<double>>> parts;
  // Runs in turns, so that noise hits both alike.
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    PrintProgress(kBench, name + ", run " + std::to_string(repeat + 1));
    options.out = JoinPath(folder, "out_" + name + "_" + std::to_string(repeat));
    constexpr int kProductSteps = 4;
    const std::clock_t cpu_before = std::clock();
    const double before = alone->ExamplesPerSecond(kProductSteps);
    const double alone_cpu = static_cast<double>(std::clock() - cpu_before) / CLOCKS_PER_SEC;
    HDPS_ASSIGN_OR_RETURN(const JobRun run, RunJob(setting, files, options));
    HDPS_RETURN_IF_ERROR(files.RemoveAll(options.out));
    if (run.steps == 0) return Status(Code::kUnavailable, name + ": the job made no step");
    alone_speeds.push_back((before + alone->ExamplesPerSecond(kProductSteps)) / 2);
    speeds.push_back(run.steady_examples_per_second);
    whole_speeds.push_back(run.examples_per_second);
    if (c.work.eval_rows > 0) aucs.push_back(run.eval_auc);
    if (run.steady_times.steps == 0) continue;
    cpu_ms.push_back(1e3 * run.steady_cpu_seconds);
    alone_cpu_ms.push_back(1e3 * alone_cpu / (kProductSteps + 1));
    const auto of_run = PartsOf(run.steady_times);
    parts.resize(of_run.size());
    for (size_t p = 0; p < of_run.size(); ++p) {
      parts[p].first = of_run[p].first;
      parts[p].second.push_back(of_run[p].second);
    }
  }
  report.AddBeside(kBench, name, "examples", "examples/s", speeds, "matrix products alone",
                   alone_speeds);
  report.Add(kBench, name, "with the steps that make the rows", "examples/s", whole_speeds);
  if (!aucs.empty()) report.Add(kBench, name, "test AUC", "", aucs);
  if (!cpu_ms.empty()) {
    report.AddBeside(kBench, name, "processor time of a step, all", "ms", cpu_ms,
                     "matrix products alone", alone_cpu_ms);
  }
  for (const auto& [part, samples] : parts) report.Add(kBench, name, part, "ms", samples);
  return Status();
}

}  // namespace

Status RunEndToEndBench(const BenchSetting& setting, FileSystem& files, BenchReport& report) {
  for (const Case& c : kCases) {
    if (!setting.Wants(NameOf(c, setting.device))) continue;
    HDPS_RETURN_IF_ERROR(RunCase(setting, files, c, report));
  }
  for (const Case& c : kGpuCases) {
    if (setting.device != "cuda" || !setting.Wants(NameOf(c, setting.device))) continue;
    HDPS_RETURN_IF_ERROR(RunCase(setting, files, c, report));
  }
  return Status();
}

}  // namespace hdps
